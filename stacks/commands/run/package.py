"""Packs the code that a run brings, as Ray packs `working_dir`."""

import logging
import zipfile
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

from components.job_template.manifests import LONGEST_CODE
from components.job_template.settings import CODE_FILE

_KIB = 2**10

_SHOWN = 3
"""How many of the largest files a message names."""


class PackageError(Exception):
    """The folder cannot be packed; the message has the reason."""


@dataclass(frozen=True)
class Package:
    uri: str
    """Ray's URI of the content, which Ray shows in the job's log, too."""

    content: bytes

    files: int

    def __str__(self) -> str:
        return f"{self.uri}, {self.files} file{'' if self.files == 1 else 's'}, {_size(len(self.content))}"


def pack(folder: Path) -> Package:
    """The files of a folder, without what its `.gitignore` and `.rayignore` exclude, and what Ray excludes by itself.

    The same files become the same bytes, whenever they were written. Raises PackageError.
    """
    if not folder.is_dir():
        raise PackageError(f"--working-dir {folder} is not a folder")
    try:
        import ray
        from ray._private.runtime_env.packaging import create_package, get_uri_for_package
        from ray._private.runtime_env.working_dir import upload_working_dir_if_needed
    except ImportError as error:
        raise PackageError(
            f"Ray packs the folder of --working-dir, and this Python has none that does ({error}): install one, "
            "`pip install ray`. It need not be that of the RayCluster"
        ) from error
    logging.getLogger("ray").setLevel(logging.ERROR)  # it announces each step
    with TemporaryDirectory() as made:
        whole, packed = Path(made, "ray.zip"), Path(made, CODE_FILE)

        def create(of: str, excludes: list[str] | None, is_file: bool = False) -> None:
            create_package(of, whole, include_gitignore=True, excludes=excludes)

        environment = {"working_dir": str(folder.absolute())}
        try:
            upload_working_dir_if_needed(environment, include_gitignore=True, upload_fn=create)
        except TypeError as error:
            raise PackageError(
                f"the Ray that is installed here, {ray.__version__}, packs folders in another way ({error}): install a "
                "newer one, `pip install --upgrade ray`. It need not be that of the RayCluster"
            ) from error
        _compress(whole, packed)
        content = packed.read_bytes()
        with zipfile.ZipFile(packed) as archive:
            files = [each for each in archive.infolist() if not each.is_dir()]
        if not files:
            raise PackageError(f"--working-dir {folder} has no files but those that .gitignore and .rayignore exclude")
        if len(content) > LONGEST_CODE:
            largest = sorted(files, key=lambda each: -each.compress_size)[:_SHOWN]
            shown = ", ".join(f"{each.filename} ({_size(each.compress_size)})" for each in largest)
            raise PackageError(
                f"--working-dir {folder} is {_size(len(content))} when packed, and a run brings at most "
                f"{_size(LONGEST_CODE)}. The largest files are {shown}. List files that the job does not need in "
                ".rayignore, and put data into storage or a bucket"
            )
        return Package(get_uri_for_package(packed), content, len(files))


def _compress(whole: Path, packed: Path) -> None:
    """Ray compresses nothing, and its archives have the times of the files."""
    with zipfile.ZipFile(whole) as found, zipfile.ZipFile(packed, "w") as archive:
        for each in sorted(found.infolist(), key=lambda one: one.filename):
            entry = zipfile.ZipInfo(each.filename)
            entry.external_attr, entry.compress_type = each.external_attr, zipfile.ZIP_DEFLATED
            archive.writestr(entry, found.read(each))


def _size(number: int) -> str:
    return f"{number / _KIB**2:.1f} MiB" if number >= _KIB**2 else f"{-(-number // _KIB)} KiB"
