"""The command line: what it answers without starting anything."""

import json
import socket
import subprocess
import sys
import threading
from importlib.metadata import version
from pathlib import Path

import pytest
import yaml

from deployments.cli import main
from deployments.models.directory import locate
from engine_adapter.spec import StreamSpec
from tests.reference.documented import documented_family

SHIPPED = Path(__file__).parents[3] / "serve_config.yaml"
HEAVY = ("torch", "vllm", "ray", "transformers", "fastapi", "numpy")


@pytest.mark.parametrize(
    "arguments", [["--help"], ["serve", "--help"], ["say", "--help"], ["generate", "--help"]]
)
def test_help_loads_nothing_heavy(arguments: list[str]) -> None:
    script = (
        "import sys, deployments.cli\n"
        f"try: deployments.cli.main({arguments})\n"
        f"finally: print([m for m in {HEAVY} if m in sys.modules], file=sys.stderr)"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
    assert done.returncode == 0
    assert done.stderr.strip() == "[]"
    assert "usage: speechlm" in done.stdout


def test_the_version_is_that_of_the_package(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit, match="0"):
        main(["--version"])
    assert capsys.readouterr().out == f"speechlm {version('speechlm-serve')}\n"


@pytest.mark.parametrize("arguments", [[], ["sing"], ["say"], ["generate", "--model", "x"]])
def test_a_mistake_exits_with_2(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit, match="2"):
        main(arguments)
    assert "usage: speechlm" in capsys.readouterr().err


def test_say_writes_no_format_under_another_s_name(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for name in (str(tmp_path / "a.xyz"), str(tmp_path / "a"), "-"):
        assert main(["say", "Hello.", "-o", name]) == 1
        assert f"{name}: must end with one of .mp3, " in capsys.readouterr().err


def test_say_tells_when_nothing_listens(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{unused.getsockname()[1]}"
        assert main(["say", "Hello.", "-o", str(tmp_path / "a.wav"), "--url", url]) == 1
    error = capsys.readouterr().err
    assert f"nothing listens at {url}" in error
    assert "speechlm serve" in error
    assert not (tmp_path / "a.wav").exists()


def test_say_tells_why_there_is_no_connection(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with socket.create_server(("127.0.0.1", 0)) as plain:
        url = f"https://127.0.0.1:{plain.getsockname()[1]}"
        threading.Thread(target=lambda: plain.accept()[0].sendall(b"HTTP/1.1 400\r\n\r\n")).start()
        assert main(["say", "Hello.", "-o", str(tmp_path / "a.wav"), "--url", url]) == 1
    assert f"cannot connect to {url}: [SSL" in capsys.readouterr().err


def test_serve_names_a_voice_that_does_not_exist(tmp_path: Path) -> None:
    config = yaml.safe_load(SHIPPED.read_text())
    model = config["applications"][0]["args"]["models"][0]
    model |= {"path": str(locate("tiny:demo", tmp_path)), "voices": ["slt", "alloy"]}
    file = tmp_path / "config.yaml"
    file.write_text(yaml.safe_dump(config))
    script = "import sys, deployments.cli; sys.exit(deployments.cli.main(sys.argv[1:]))"
    command = [sys.executable, "-c", script, "serve", str(file)]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 1
    assert "models.0.voices: 'alloy' is not one of rms, slt" in done.stderr
    assert "Traceback" not in done.stderr


def test_generate_names_what_is_missing(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    requests = tmp_path / "in.jsonl"
    arguments = ["generate", "--requests", str(requests), "--output", str(tmp_path / "out.jsonl")]
    assert main([*arguments, "--model", str(tmp_path)]) == 1
    assert "in.jsonl: no such file" in capsys.readouterr().err
    requests.write_text("")
    assert main([*arguments, "--model", str(tmp_path / "nowhere")]) == 1
    assert "nowhere: no such model directory" in capsys.readouterr().err


def test_make_tiny_makes_a_model_directory(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["make-tiny", "--family", "demo", "--out", str(tmp_path / "m")]) == 0
    said = capsys.readouterr()
    assert (said.out, said.err) == (f"{tmp_path / 'm'}\n", "")
    assert json.loads((tmp_path / "m" / "speech.json").read_text())["family"] == "demo"
    assert (tmp_path / "m" / "codec" / "config.json").is_file()


def test_make_tiny_takes_the_spec_of_a_new_family(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """As docs/new-family.md says."""
    spec, out = documented_family(), tmp_path / "robin-tiny"
    (tmp_path / "robin").mkdir()
    arguments = ["make-tiny", "--spec", str(tmp_path / "robin"), "--out", str(out)]
    assert main([*arguments, "--codec", "encodec"]) == 1
    assert "speech.json" in capsys.readouterr().err
    spec.save(tmp_path / "robin")
    assert main([*arguments, "--codec", "encodec", "--backbone", "llama"]) == 0
    assert StreamSpec.load(out) == spec
    assert json.loads((out / "codec" / "config.json").read_text())["model_type"] == "encodec"
    assert json.loads((out / "config.json").read_text())["model_type"] == "llama"
    arguments = ["make-tiny", "--family", "demo", "--out", str(tmp_path / "other")]
    assert main([*arguments, "--codec", "encodec"]) == 1
    assert "--codec" in capsys.readouterr().err


def test_make_tiny_passes_on_what_the_maker_refuses(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    arguments = ["make-tiny", "--family", "demo", "--out", str(tmp_path), "--hidden", "7"]
    assert main(arguments) == 1
    assert "--hidden: must be" in capsys.readouterr().err
