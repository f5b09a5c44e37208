// Handler shapes. What happens to a record when
//  1. the handler throws: rolled back; `retry`, class `exception`, one attempt (FenceRefused: 3).
//  2. the partition is revoked mid-handler: `drain_deadline` shows at once, the stop token fires
//     at half the budget. Finished in the drain budget: counts, committed before the release.
//     Later: late, changes nothing; the successor finds the effect in the store and skips it, or
//     makes it and ours is refused.
//  3. the assignment is lost, or the fence refuses: retired at once, no commit, every completion
//     late. An effect stored before the successor's activation stands and is read by it (T3); a
//     later one is refused.
//  4. the database commit loses its reply: neither done nor failed. Progress is read on a new
//     connection: there = `done`, absent = again; store away = incomplete, visible, the lane
//     waits.
//  5. the process dies between effect and offset commit: `transaction`: skipped, from the store.
//     `idempotent`: runs again, same identity.
//
// Threads: blocking handlers run on workers, several at once; two records of one lane never
// overlap (order none without a store has no lanes). Async handlers are called on a worker and
// must return soon; their Completion may be used on any thread.
#pragma once

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <tuple>
#include <type_traits>
#include <utility>

#include "tenure/batch.hpp"
#include "tenure/completion.hpp"
#include "tenure/outcome.hpp"
#include "tenure/owner.hpp"
#include "tenure/port/effect_store.hpp"
#include "tenure/record.hpp"

namespace tenure {

/// A handler of any shape, type-erased. Value.
struct Handler {
  enum class Shape : std::uint8_t {
    single,  ///< Outcome(const Record&, const Owner& [, Transaction&])
    batch,   ///< Outcome(Batch, const Owner& [, Transaction&])
    async,   ///< void(const Record&, const Owner&, Completion)
  };
  Shape shape = Shape::single;
  /// Kind of the Transaction it takes, `Transaction::kind()`; null: it takes none.
  TransactionKind transaction = nullptr;
  /// single (one record) and batch; `transaction` is the adapter's object or null.
  std::function<Outcome(Batch records, const Owner& owner, void* transaction)> blocking;
  std::function<void(const Record& record, const Owner& owner, Completion completion)> async;
};

namespace detail {

template <class F>
struct Signature : Signature<decltype(&F::operator())> {};
template <class R, class... A>
struct Signature<R (*)(A...)> {
  using result = R;
  /// void: there are not so many.
  template <std::size_t I>
  using argument = std::tuple_element_t<I, std::tuple<A..., void, void, void>>;
  static constexpr std::size_t arguments = sizeof...(A);
};
template <class R, class... A>
struct Signature<R (&)(A...)> : Signature<R (*)(A...)> {};
template <class C, class R, class... A>
struct Signature<R (C::*)(A...)> : Signature<R (*)(A...)> {};
template <class C, class R, class... A>
struct Signature<R (C::*)(A...) const> : Signature<R (*)(A...)> {};
template <class C, class R, class... A>
struct Signature<R (C::*)(A...) noexcept> : Signature<R (*)(A...)> {};
template <class C, class R, class... A>
struct Signature<R (C::*)(A...) const noexcept> : Signature<R (*)(A...)> {};

template <class T>
concept TransactionReference = std::is_lvalue_reference_v<T> && requires {
  { std::remove_reference_t<T>::kind() } -> std::same_as<TransactionKind>;
};

}  // namespace detail

/// Makes a Handler of a function, function object or lambda (not generic). A Transaction type is
/// any class with a static `TransactionKind kind()`.
template <class F>
Handler make_handler(F&& function) {
  using Function = std::decay_t<F>;
  using Shape = detail::Signature<Function>;
  static_assert(Shape::arguments == 2 || Shape::arguments == 3,
                "a handler takes (record or batch, owner [, transaction or completion])");
  using First = std::decay_t<typename Shape::template argument<0>>;
  constexpr bool batch = std::is_same_v<First, Batch>;
  static_assert(batch || std::is_same_v<First, Record>,
                "a handler's first argument is const tenure::Record& or tenure::Batch");
  static_assert(std::is_same_v<std::decay_t<typename Shape::template argument<1>>, Owner>,
                "a handler's second argument is const tenure::Owner&");
  Handler handler;
  if constexpr (std::is_void_v<typename Shape::result>) {
    static_assert(Shape::arguments == 3 &&
                      std::is_same_v<typename Shape::template argument<2>, Completion> && !batch,
                  "a handler that returns nothing takes a tenure::Completion by value");
    handler.shape = Handler::Shape::async;
    handler.async = std::forward<F>(function);
  } else {
    static_assert(std::is_same_v<typename Shape::result, Outcome>,
                  "a handler returns tenure::Outcome, or takes a tenure::Completion");
    handler.shape = batch ? Handler::Shape::batch : Handler::Shape::single;
    if constexpr (Shape::arguments == 3) {
      static_assert(detail::TransactionReference<typename Shape::template argument<2>>,
                    "the third argument of a handler that returns an outcome is a store's "
                    "Transaction&");
      using Transaction = std::decay_t<typename Shape::template argument<2>>;
      handler.transaction = Transaction::kind();
      handler.blocking = [f = Function(std::forward<F>(function))](
                             Batch records, const Owner& owner, void* transaction) mutable {
        auto& tx = *static_cast<Transaction*>(transaction);
        if constexpr (batch) {
          return f(records, owner, tx);
        } else {
          return f(records.front(), owner, tx);
        }
      };
    } else {
      handler.blocking = [f = Function(std::forward<F>(function))](
                             Batch records, const Owner& owner, void*) mutable {
        if constexpr (batch) {
          return f(records, owner);
        } else {
          return f(records.front(), owner);
        }
      };
    }
  }
  return handler;
}

}  // namespace tenure
