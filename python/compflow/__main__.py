"""`python -m compflow` is the command `compflow`."""

import os
import sys

from ._folders import executable

if __name__ == "__main__":
    command = executable()
    os.execv(command, [command, *sys.argv[1:]])
