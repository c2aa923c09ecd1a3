"""Continue a prompt with a checkpoint on disk: ``python -m attnlib.hf FOLDER "a prompt"``."""

import argparse
import sys
import time

from attnlib.hf import load


def main(arguments: list[str] | None = None) -> None:
    """Print what the model writes as it writes it, and then how fast it was."""
    options = _parser().parse_args(arguments)
    try:
        _write(options)
    except (ImportError, OSError, LookupError, TypeError, ValueError) as error:
        sys.exit(f"error: {error.args[0] if isinstance(error, KeyError) else error}")


def _write(options: argparse.Namespace) -> None:
    sampling = {name: getattr(options, name) for name in ("temperature", "top_k", "top_p", "min_p", "seed")}
    loaded = load(options.folder, backend=options.backend, dtype=options.dtype, device=options.device)
    pieces = loaded.generate(options.prompt, max_new_tokens=options.max_new_tokens, **sampling)
    print(options.prompt, end="", flush=True)
    times = [time.perf_counter()]
    for piece in pieces:
        print(piece, end="", flush=True)
        times.append(time.perf_counter())
    print()
    if len(times) > 2:
        rate = (len(times) - 2) / (times[-1] - times[1])
        print(f"first piece after {times[1] - times[0]:.2f} s, then {rate:.1f} pieces per second", file=sys.stderr)


def _parser() -> argparse.ArgumentParser:
    what = "Continue a prompt with a checkpoint on disk."
    parser = argparse.ArgumentParser(prog="python -m attnlib.hf", description=what)
    parser.add_argument("folder", help="the folder with config.json, tokenizer.json and .safetensors files")
    parser.add_argument("prompt", help="the beginning of the text")
    parser.add_argument("--backend", choices=("numpy", "torch"), default="numpy")
    parser.add_argument("--dtype", default="float32", help="dtype of the parameters, e.g. bfloat16 with torch")
    parser.add_argument("--device", help="where torch computes, e.g. cuda")
    parser.add_argument("--max-new-tokens", type=int, default=100, metavar="N")
    parser.add_argument("--temperature", type=float, default=0.8, help="0 always takes the most probable token")
    parser.add_argument("--top-k", type=int, metavar="K")
    parser.add_argument("--top-p", type=float, metavar="P")
    parser.add_argument("--min-p", type=float, metavar="P")
    parser.add_argument("--seed", type=int, help="a whole number, to get the same text again")
    return parser


if __name__ == "__main__":
    main()
