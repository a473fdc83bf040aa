# SPDX-License-Identifier: MIT OR Apache-2.0
"""`python -m burncc ...` is burncc."""
import os
import sys

from .build import compiler


def main():
    path = compiler()
    os.execv(path, [path, *sys.argv[1:]])


if __name__ == "__main__":
    main()
