"""API keys: the file, the environment, who is found by one, and who may do without."""

import os
import threading
import time
from pathlib import Path

import pytest
import yaml

from deployments import cli
from deployments.guards import exposure, keys, keys_file
from deployments.guards.key_source import VARIABLE, KeySource, configured, plain_keys
from deployments.guards.keys import PREFIX, KeyRing, checked_client, hash_key, key_id, make_key
from deployments.guards.keys_file import KeysFileError
from deployments.guards.settings import ClientLimits, GuardSettings

ONE = f"{{hash: {hash_key('a-key-of-a-test')}}}"


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "keys.yaml"


def create(file: Path, client: str, capsys: pytest.CaptureFixture[str]) -> str:
    assert cli.main(["keys", "create", "--client", client, "--file", str(file)]) == 0
    return capsys.readouterr().out.strip()


def source(file: Path, **environment: str) -> KeySource:
    return KeySource(GuardSettings(keys_file=str(file)), environment)


def client_of(source: KeySource, key: str) -> str | None:
    caller = source.find(key)
    return None if caller is None else caller.client


def test_keys_are_long_random_and_not_kept(file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    key = create(file, "alice", capsys)
    assert key.startswith("sk-speechlm-")
    assert len(key) >= len("sk-speechlm-") + 43  # 256 bits
    content = file.read_text()
    assert key not in content
    assert hash_key(key) in content
    assert file.stat().st_mode & 0o777 == 0o600


def test_a_client_has_several_keys_and_each_can_be_revoked(
    file: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    first, second = (create(file, "alice", capsys) for _ in range(2))
    bobs = create(file, "bob", capsys)
    assert [client_of(source(file), k) for k in (first, second, bobs)] == ["alice", "alice", "bob"]

    assert cli.main(["keys", "list", "--file", str(file)]) == 0
    listed = capsys.readouterr().out
    assert [line.split()[::2] for line in listed.splitlines()] == [
        [key_id(hash_key(key)), client]
        for key, client in ((first, "alice"), (second, "alice"), (bobs, "bob"))
    ]
    first_id = key_id(hash_key(first))
    assert cli.main(["keys", "revoke", first_id, "--file", str(file)]) == 0
    assert [client_of(source(file), k) for k in (first, second)] == [None, "alice"]
    assert cli.main(["keys", "revoke", first_id, "--file", str(file)]) == 1
    assert f"there is no key {first_id}" in capsys.readouterr().err
    missing = file.with_name("missing.yaml")
    assert cli.main(["keys", "revoke", first_id, "--file", str(missing)]) == 1
    assert f"{missing}: No such file" in capsys.readouterr().err
    assert not missing.exists()


@pytest.mark.parametrize("name", ["", "a b", "anonymous", "-x", "x" * 65, "a/b"])
def test_names_that_no_client_can_have(
    file: Path, name: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert cli.main(["keys", "create", f"--client={name}", "--file", str(file)]) == 1
    assert "client" in capsys.readouterr().err
    assert not file.exists()


def test_keys_made_at_the_same_time_are_all_kept(file: Path) -> None:
    def add(number: int) -> None:
        with keys_file.editing(file) as content:
            time.sleep(0.01)
            content.add("alice", hash_key(str(number)))

    threads = [threading.Thread(target=add, args=(i,)) for i in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(keys_file.load(file).clients["alice"].keys) == 8


def test_editing_keeps_the_mode_and_the_limits(
    file: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    limits = {"concurrent_requests": 2, "audio_seconds_per_day": None}
    file.write_text(yaml.safe_dump({"clients": {"alice": {"keys": [], "limits": limits}}}))
    file.chmod(0o640)
    create(file, "alice", capsys)
    assert file.stat().st_mode & 0o777 == 0o640
    assert yaml.safe_load(file.read_text())["clients"]["alice"]["limits"] == limits


def test_a_client_s_limits_replace_the_settings_one_by_one(file: Path) -> None:
    key = make_key()
    entry = {
        "keys": [{"hash": hash_key(key)}],
        "limits": {"concurrent_requests": 9, "audio_seconds_per_day": None},
    }
    file.write_text(yaml.safe_dump({"clients": {"alice": entry}}))
    defaults = ClientLimits(
        concurrent_requests=1, requests_per_second=2.5, audio_seconds_per_day=10
    )
    caller = KeySource(GuardSettings(keys_file=str(file), limits=defaults), {}).find(key)
    assert caller is not None
    assert caller.limits == ClientLimits(concurrent_requests=9, requests_per_second=2.5)


@pytest.mark.parametrize("key", ["", "x", "sk-speechlm-", "\udcff", "k" * 100_000])
def test_a_wrong_key_is_nobody_s(key: str) -> None:
    ring = KeyRing([(hash_key(make_key()), keys.Caller("alice", "x", ClientLimits()))])
    assert ring.find(key) is None


def test_hashes_that_begin_alike_are_told_apart() -> None:
    right = hash_key("key")
    other = right[:-1] + ("0" if right[-1] != "0" else "1")
    alice, bob = (keys.Caller(name, key_id(right), ClientLimits()) for name in ("alice", "bob"))
    assert KeyRing([(other, bob)]).find("key") is None
    assert KeyRing([(other, bob), (right, alice)]).find("key") == alice


@pytest.mark.parametrize(
    ("content", "says"),
    [
        ("clients:\n  - [}", "line 2"),
        ("clients: 3", "clients"),
        ("klients: {}", "klients"),
        ("clients: {alice: {keys: [{hash: sk-speechlm-secret}]}}", "hash"),
        ("clients: {alice: {limits: {concurrent_requests: 0}}}", "concurrent_requests"),
        ("clients: {'a b': {}}", "a b"),
        ("clients: sk-speechlm-secret: x", "YAML"),
        ("", "is empty; to let nobody in, write clients: {}"),
        ("# clients: {alice: {}}", "is empty"),
        ("clients:", "clients"),
        ("{}", "clients: is required"),
        (
            "clients:\n  secret: {}\n  bob: {}\n  secret: {}",
            "the same key twice in one place (line 4)",
        ),
        (f"clients: {{alice: {{keys: [{ONE}]}}, bob: {{keys: [{ONE}]}}}}", "alice and bob"),
    ],
)
def test_a_file_that_cannot_be_used_is_named_and_not_quoted(
    file: Path, content: str, says: str
) -> None:
    file.write_text(content)
    with pytest.raises(KeysFileError) as caught:
        source(file)
    assert str(file) in str(caught.value)
    assert says in str(caught.value)
    assert "secret" not in str(caught.value)


def test_a_missing_file_is_an_error_at_the_start(file: Path) -> None:
    with pytest.raises(KeysFileError, match="No such file"):
        source(file)


def test_a_change_of_the_file_counts_and_a_broken_one_changes_nothing(
    file: Path, capsys: pytest.CaptureFixture[str], caplog: pytest.LogCaptureFixture
) -> None:
    first = create(file, "alice", capsys)
    followed = source(file)
    second = create(file, "bob", capsys)
    assert client_of(followed, second) is None
    followed.refresh()
    assert client_of(followed, second) == "bob"

    good = file.read_text()
    for broken in ("clients: [", "", "clients: {alice: {}, alice: {}}", None):
        if broken is None:
            file.unlink()
        else:
            file.write_text(broken)
        followed.refresh()
        assert followed.problem is not None
        assert [client_of(followed, key) for key in (first, second)] == ["alice", "bob"]
        assert str(file) in caplog.text
    file.write_text(good)
    followed.refresh()
    assert followed.problem is None
    file.write_text("clients: {}")
    followed.refresh()
    assert client_of(followed, first) is None


def test_the_file_is_followed_from_a_thread(file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    key = create(file, "alice", capsys)
    followed = source(file)
    followed.follow()
    try:
        replacement = file.with_name("new")
        replacement.write_text("clients: {}\n")
        os.replace(replacement, file)
        deadline = time.monotonic() + 5
        while client_of(followed, key) is not None:
            assert time.monotonic() < deadline
            time.sleep(0.01)
    finally:
        followed.stop()


def test_keys_of_the_environment(file: Path) -> None:
    key = make_key()
    value = f"dev=plain-text-key\n ci={hash_key(key)}"
    found = KeySource(GuardSettings(), {VARIABLE: value})
    assert client_of(found, "plain-text-key") == "dev"
    assert client_of(found, key) == "ci"
    assert client_of(found, hash_key(key)) is None
    assert plain_keys({VARIABLE: value}) == ["plain-text-key"]


def test_a_key_has_one_owner_wherever_it_stands(file: Path) -> None:
    file.write_text(f"clients: {{alice: {{keys: [{ONE}]}}}}")
    assert (
        client_of(source(file, **{VARIABLE: "alice=a-key-of-a-test"}), "a-key-of-a-test") == "alice"
    )
    with pytest.raises(KeysFileError, match=r"guards\.keys_file: .* two clients, bob and alice"):
        source(file, **{VARIABLE: "bob=a-key-of-a-test"})
    with pytest.raises(ValueError, match=r"^the key .* two clients, bob and carl"):
        KeySource(GuardSettings(), {VARIABLE: "bob=a-key-of-a-test carl=a-key-of-a-test"})


@pytest.mark.parametrize("value", ["secret", "=secret", "a=short", "a=sha256:12", "a b=secretive"])
def test_an_environment_that_cannot_be_used_is_not_quoted(value: str) -> None:
    with pytest.raises(ValueError, match=r"SPEECHLM|sha256|client") as caught:
        KeySource(GuardSettings(), {VARIABLE: value})
    assert "secret" not in str(caught.value)


@pytest.mark.parametrize("key", ["sk-speechlm-SECRET", "sk+other+SECRET"])
def test_a_key_before_its_client_is_not_quoted(file: Path, key: str) -> None:
    with pytest.raises(ValueError, match=f"{VARIABLE}: part 2") as caught:
        KeySource(GuardSettings(), {VARIABLE: f"bob=plain-text-key {key}=alice-smith"})
    assert "SECRET" not in str(caught.value)
    with pytest.raises(ValueError, match="client") as caught:
        checked_client(key)
    if key.startswith(PREFIX):
        assert "SECRET" not in str(caught.value)
        file.write_text(f"clients: {{{key}: {{}}}}")
        with pytest.raises(KeysFileError, match="client") as caught:
            source(file)
        assert "SECRET" not in str(caught.value)


def test_without_keys_only_this_machine_is_served() -> None:
    closed = GuardSettings()
    for host in ("127.0.0.1", "localhost", "::1", "127.8.9.1"):
        assert "no API keys" in str(exposure.warning(host, closed, {}))
    for host in ("0.0.0.0", "::", "192.168.1.2", "example.org"):
        with pytest.raises(exposure.ExposedError, match=f"others may reach {host}"):
            exposure.warning(host, closed, {})
        assert exposure.warning(host, GuardSettings(open=True), {}) is not None
        assert exposure.warning(host, GuardSettings(keys_file="x"), {}) is None
        assert exposure.warning(host, closed, {VARIABLE: "a=sha256:..."}) is None


def test_a_keys_file_without_a_key_lets_nobody_in(file: Path) -> None:
    file.write_text("clients: {}")
    assert configured(GuardSettings(keys_file=str(file)), {})
    assert source(file).find("") is None
    assert not configured(GuardSettings(), {VARIABLE: " \n"})


@pytest.mark.parametrize(
    ("content", "said"),
    [
        ("[]", "must be a mapping with the key clients"),
        ("just words", "must be a mapping with the key clients"),
        ("clients: []", "clients: must be an object"),
        ("clients: {a b: {}}", "clients: client 'a b': a name has 1 to 64 letters"),
        (f"clients: {{{PREFIX + 'A' * 43}: {{}}}}", "clients: a key stands where"),
        (
            f"clients: {{a: {{keys: [{{hash: {hash_key('x')}, created: 2026-11-30}}]}}}}",
            "clients.a.keys.0.created: must be a string: write it in quotes",
        ),
        ("clients: {a: {keys: [{hash: 7}]}}", "clients.a.keys.0.hash: must be a string"),
    ],
)
def test_what_is_wrong_in_the_file_is_said_plainly(file: Path, content: str, said: str) -> None:
    file.write_text(content)
    with pytest.raises(KeysFileError) as caught:
        keys_file.load(file)
    assert str(caught.value).startswith(f"{file}: {said}")
    assert PREFIX not in str(caught.value)


def test_a_hash_in_the_environment_is_named_by_its_place(file: Path) -> None:
    keys_file._write(file, keys_file.KeysFile(clients={}))
    with pytest.raises(ValueError, match=f"^{VARIABLE}: part 2: a hash is ") as caught:
        source(file, **{VARIABLE: "bob=abcdefgh alice=sha256:zz"})
    assert "zz" not in str(caught.value)


def test_both_actions_call_the_file_as_it_was_called(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("k.yaml").write_text("[]")
    for action in (["create", "--client", "a"], ["list"], ["revoke", "x"]):
        assert cli.main(["keys", *action, "--file", "k.yaml"]) == 1
        error = capsys.readouterr().err
        assert error == "speechlm: k.yaml: must be a mapping with the key clients\n"
