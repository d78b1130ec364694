import hashlib
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from registry.artifacts.errors import ManifestError
from registry.artifacts.manifest import MAX_FILES, ArtifactFile, ArtifactManifest

ABC = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"
FILES = st.lists(
    st.builds(
        ArtifactFile,
        st.from_regex(r"[a-z]{3,8}\.(json|txt)", fullmatch=True),
        st.integers(0, 1 << 40),
        st.from_regex(r"[0-9a-f]{64}", fullmatch=True),
    ),
    min_size=1,
    max_size=8,
    unique_by=lambda file: file.path,
).filter(lambda files: not {"con", "prn", "aux", "nul"} & {file.path.split(".")[0] for file in files})


def test_digest_is_the_documented_one() -> None:
    manifest = ArtifactManifest.of([ArtifactFile("b/c.txt", 3, ABC), ArtifactFile("a.txt", 3, ABC)])
    text = f'[["a.txt",3,"{ABC}"],["b/c.txt",3,"{ABC}"]]'
    assert manifest.digest == hashlib.sha256(text.encode()).hexdigest()
    assert (manifest.num_files, manifest.size_bytes) == (2, 6)


@given(FILES, st.randoms(use_true_random=False))
def test_digest_does_not_depend_on_the_order(files: list[ArtifactFile], random: Any) -> None:
    shuffled = list(files)
    random.shuffle(shuffled)
    assert ArtifactManifest.of(files) == ArtifactManifest.of(shuffled)
    assert ArtifactManifest.of(files).digest == ArtifactManifest.of(shuffled).digest


@given(FILES)
def test_json_round_trip(files: list[ArtifactFile]) -> None:
    manifest = ArtifactManifest.of(files)
    assert ArtifactManifest.from_json(manifest.to_json()).digest == manifest.digest


@given(FILES)
def test_any_change_changes_the_digest(files: list[ArtifactFile]) -> None:
    first, *rest = files
    manifest = ArtifactManifest.of(files)
    assert (
        ArtifactManifest.of([ArtifactFile(first.path, first.size_bytes + 1, first.sha256), *rest]).digest
        != manifest.digest
    )
    assert (
        ArtifactManifest.of(
            [ArtifactFile("other-" + first.path, first.size_bytes, first.sha256), *rest]
        ).digest
        != manifest.digest
    )


def test_every_fault_is_named() -> None:
    files = [ArtifactFile("../x", -1, "abc"), ArtifactFile("A", 1, ABC), ArtifactFile("a", 1, ABC)]
    with pytest.raises(ManifestError) as caught:
        ArtifactManifest.of(files)
    codes = {finding.code for finding in caught.value.details}
    assert codes == {"path-traversal", "size-invalid", "digest-invalid", "path-case-collision"}


@pytest.mark.parametrize(
    "value",
    [
        None,
        {},
        ["a"],
        [{"path": "a", "size_bytes": True, "sha256": ABC}],
        [{"path": "a", "size_bytes": 1.0, "sha256": ABC}],
        [{"path": None, "size_bytes": 1, "sha256": ABC}],
        [{"path": "a", "size_bytes": 1}],
        [{"path": "a", "size_bytes": 1, "sha256": ABC, "mode": 7}],
    ],
)
def test_from_json_refuses_other_shapes(value: object) -> None:
    with pytest.raises(ManifestError):
        ArtifactManifest.from_json(value)


def test_an_artifact_needs_files_but_not_too_many() -> None:
    with pytest.raises(ManifestError) as caught:
        ArtifactManifest.of([])
    assert caught.value.details[0].code == "artifact-empty"
    with pytest.raises(ManifestError) as caught:
        ArtifactManifest.of(ArtifactFile(f"f{index}", 1, ABC) for index in range(MAX_FILES + 1))
    assert caught.value.details[0].code == "artifact-too-many-files"


def test_file_by_path() -> None:
    manifest = ArtifactManifest.of([ArtifactFile("a", 1, ABC)])
    assert manifest.file("a") == ArtifactFile("a", 1, ABC)
    assert manifest.file("b") is None
