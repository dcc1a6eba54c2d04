"""Runs a Pulumi program; started by the language host with the project's own interpreter.

Reads the configuration from PULUMI_CONFIG and PULUMI_CONFIG_SECRET_KEYS. Exits with 0, with REPORTED if the error was
reported to the user already, or with another code.
"""

import argparse
import asyncio
import logging
import os
import pathlib
import runpy
import signal
import sys
import traceback
import warnings
from concurrent.futures import ThreadPoolExecutor

# This file's folder is the language host's own code: a program must not import from it.
del sys.path[0]

REPORTED = 32
"""The exit code after the user has seen an error message (as in Pulumi's own host)."""

try:
    import pulumi
    import pulumi.runtime
except ImportError as missing:
    sys.exit(
        f"Pulumi's Python SDK cannot be imported by {sys.executable} ({missing}). "
        "Run `pulumi install`, or install what requirements.txt lists."
    )


def main() -> int:
    """Runs the program in the command line's arguments, in a stack of the engine that monitors it."""
    parser = argparse.ArgumentParser()
    for name in ("monitor", "engine", "project", "root_directory", "stack", "organization", "pwd"):
        parser.add_argument(f"--{name}", required=True)
    parser.add_argument("--dry_run", action="store_true")
    parser.add_argument("--parallel", type=int, required=True)
    parser.add_argument("program")
    parser.add_argument("arguments", nargs=argparse.REMAINDER)
    options = parser.parse_args()

    pulumi.runtime.set_all_config(pulumi.runtime.get_config_env(), pulumi.runtime.get_config_secret_keys_env())
    pulumi.runtime.configure(
        pulumi.runtime.Settings(
            monitor=options.monitor,
            engine=options.engine,
            project=options.project,
            root_directory=options.root_directory,
            stack=options.stack,
            organization=options.organization,
            parallel=options.parallel,
            dry_run=options.dry_run,
        )
    )
    os.chdir(options.pwd)
    sys.argv = [options.program, *options.arguments]
    # A failed program leaves futures that nobody awaited; the error itself is reported below.
    logging.getLogger("asyncio").setLevel(logging.CRITICAL)

    program = pathlib.Path(options.program).absolute()
    main_file = program / "__main__.py" if program.is_dir() else program
    if not main_file.is_file():
        pulumi.log.error(f"the program is missing: {main_file} (see 'main' in Pulumi.yaml)")
        return REPORTED
    loop = asyncio.new_event_loop()
    asyncio.set_event_loop(loop)
    # Every resource operation waits for the engine on its own thread.
    with ThreadPoolExecutor(max_workers=4 * max(options.parallel, 1)) as executor:
        loop.set_default_executor(executor)
        try:
            loop.run_until_complete(pulumi.runtime.run_in_stack(lambda: run(options.program)))
        except pulumi.RunError as error:
            pulumi.log.error(str(error))
            return 1
        except KeyboardInterrupt:  # the engine cancels, and has informed the user
            signal.signal(signal.SIGINT, signal.SIG_IGN)
            warnings.simplefilter("ignore", RuntimeWarning)  # futures that are not awaited any more
            return 128 + signal.SIGINT
        except Exception as error:  # every exception that the program did not catch
            pulumi.log.error(f"Program failed with an unhandled exception:\n{traceback_from(main_file, error)}")
            return REPORTED
        finally:
            loop.close()
            sys.stdout.flush()
            sys.stderr.flush()
    return 0


def run(program: str) -> None:
    """Runs the program's code; its globals, which `run_path` returns, are not outputs of the stack."""
    runpy.run_path(program, run_name="__main__")


def traceback_from(main_file: pathlib.Path, error: Exception) -> str:
    """The traceback without the frames before the program's own first line, which do not help the user."""
    start = error.__traceback__
    while start is not None and pathlib.Path(start.tb_frame.f_code.co_filename).absolute() != main_file:
        start = start.tb_next
    if start is None and isinstance(error, SyntaxError):  # in the main file itself: none of its lines has run
        return "".join(traceback.format_exception_only(type(error), error))
    return "".join(traceback.format_exception(type(error), error, start or error.__traceback__))


if __name__ == "__main__":
    sys.exit(main())
