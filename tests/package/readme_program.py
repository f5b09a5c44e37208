"""readme_program.py README FOLDER: FOLDER/readme.cpp, the one whole program that README shows."""
import pathlib
import re
import sys

LINES_MAX = 25


def main(readme, folder):
    blocks = re.findall(r"^```cpp\n(.*?)^```$", pathlib.Path(readme).read_text(encoding="utf-8"),
                        re.MULTILINE | re.DOTALL)
    programs = [block for block in blocks if "int main" in block]
    if len(programs) != 1:
        sys.exit(f"{readme}: {len(programs)} cpp blocks with a main(), 1 is wanted")
    lines = programs[0].count("\n")
    if lines > LINES_MAX:
        sys.exit(f"{readme}: the program has {lines} lines, {LINES_MAX} at most are wanted")
    target = pathlib.Path(folder) / "readme.cpp"
    target.parent.mkdir(parents=True, exist_ok=True)
    if not target.exists() or target.read_text(encoding="utf-8") != programs[0]:
        target.write_text(programs[0], encoding="utf-8")
    print(f"{target}: {lines} lines")


main(*sys.argv[1:])
