# ruff: noqa: F704, F706, F821, PLE1142
# A program is the body of an async function, so it awaits and returns at its top level; `tools` is bound by
# whoever runs it.
"""Take a census of the Python files of this project: how long they are, what they import, where it is dense.

Run it from the project's root:  codemode run examples/code_census.py
"""

import asyncio
import re
from collections import Counter

PACKAGES = ["codemode", "sandbox", "tool_bindings"]
BAR = "█"


async def whole_text(path):
    """Read a file window by window; one call gives at most 2000 lines."""
    lines, offset = [], 1
    while True:
        window = await tools.read(file_path=path, offset=offset)
        lines += [line["text"] for line in window["lines"]]
        offset += len(window["lines"])
        if offset > window["totalLines"] or not window["lines"]:
            return lines


def function_lengths(lines):
    """Yield name and length of every function, by indentation: good enough for a ranking."""
    for number, line in enumerate(lines):
        start = re.match(r"( *)(?:async )?def (\w+)", line)
        if not start:
            continue
        indent, end = len(start[1]), number
        body_began = False
        for later in range(number + 1, len(lines)):
            text = lines[later]
            if text.strip():
                depth = len(text) - len(text.lstrip())
                # The closing parenthesis of a long signature stands as deep as the def itself.
                if depth <= indent and (body_began or not text.lstrip().startswith(")")):
                    break
                body_began = body_began or depth > indent
                end = later
        yield start[2], end - number + 1


def imported_package(line):
    """Return which of the packages a line imports, if any."""
    found = re.match(r"\s*(?:from|import) (\w+)", line)
    return found[1] if found and found[1] in PACKAGES else None


files, functions, imports = [], [], Counter()
for package in PACKAGES:
    found = await tools.glob(pattern="**/*.py", path=package)
    paths = sorted(found["paths"])
    for path, lines in zip(paths, await asyncio.gather(*map(whole_text, paths)), strict=True):
        code = [line for line in lines if line.strip() and not line.strip().startswith("#")]
        files.append({"package": package, "path": path, "lines": len(lines), "code": len(code)})
        functions += [{"path": path, "name": name, "lines": size} for name, size in function_lengths(lines)]
        for line in lines:
            target = imported_package(line)
            if target and target != package:
                imports[(package, target)] += 1

totals = {package: sum(file["lines"] for file in files if file["package"] == package) for package in PACKAGES}
widest = max([1, *totals.values()])
print(f"{len(files)} files, {sum(totals.values())} lines, {len(functions)} functions")
print()
for package, count in totals.items():
    print(f"  {package:<14} {count:>6}  {BAR * round(30 * count / widest)}")

longest_files = sorted(files, key=lambda file: -file["lines"])[:5]
print("\nlongest files")
for file in longest_files:
    print(f"  {file['lines']:>6}  {file['path']}")

longest_functions = sorted(functions, key=lambda function: -function["lines"])[:5]
print("\nlongest functions")
for function in longest_functions:
    print(f"  {function['lines']:>6}  {function['name']}  ({function['path']})")

print("\nimports between the packages")
for (importer, imported), count in sorted(imports.items(), key=lambda item: -item[1]):
    print(f"  {importer:>14} -> {imported:<14} {count:>4}")
print()

return {
    "files": len(files),
    "lines": totals,
    "longestFile": longest_files[0]["path"] if longest_files else None,
    "longestFunction": longest_functions[0]["name"] if longest_functions else None,
    "imports": {f"{importer} -> {imported}": count for (importer, imported), count in imports.items()},
}
