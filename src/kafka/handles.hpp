// Owners of librdkafka's C objects: each frees its own on the way out.
#pragma once

#include <librdkafka/rdkafka.h>

#include <memory>
#include <string>
#include <string_view>

#include "tenure/ids.hpp"

namespace tenure::kafka {

template <auto free_function>
struct Free {
  template <class T>
  void operator()(T* object) const {
    free_function(object);
  }
};

using ConfHandle = std::unique_ptr<rd_kafka_conf_t, Free<rd_kafka_conf_destroy>>;
using QueueHandle = std::unique_ptr<rd_kafka_queue_t, Free<rd_kafka_queue_destroy>>;
using EventHandle = std::unique_ptr<rd_kafka_event_t, Free<rd_kafka_event_destroy>>;
using ErrorHandle = std::unique_ptr<rd_kafka_error_t, Free<rd_kafka_error_destroy>>;
using GroupMetadata = std::unique_ptr<rd_kafka_consumer_group_metadata_t,
                                      Free<rd_kafka_consumer_group_metadata_destroy>>;

/// A list of partitions. Rows are added in order and stay in it.
class PartitionList {
 public:
  PartitionList() : list_(rd_kafka_topic_partition_list_new(8)) {}
  rd_kafka_topic_partition_t& add(const TopicPartition& partition,
                                  std::int64_t offset = RD_KAFKA_OFFSET_INVALID) {
    rd_kafka_topic_partition_t* row = rd_kafka_topic_partition_list_add(
        list_.get(), partition.topic.c_str(), partition.partition.value());
    row->offset = offset;
    return *row;
  }
  [[nodiscard]] rd_kafka_topic_partition_list_t* get() const { return list_.get(); }
  [[nodiscard]] int size() const { return list_->cnt; }
  [[nodiscard]] bool empty() const { return list_->cnt == 0; }
  [[nodiscard]] rd_kafka_topic_partition_t& operator[](int row) const { return list_->elems[row]; }

 private:
  std::unique_ptr<rd_kafka_topic_partition_list_t, Free<rd_kafka_topic_partition_list_destroy>>
      list_;
};

inline TopicPartition partition_of(const rd_kafka_topic_partition_t& row) {
  return {row.topic, Partition(row.partition)};
}

}  // namespace tenure::kafka
