"""A run through a server against the server's own rate, in turns on one machine.

    python benchmarks/endpoint.py --model http://127.0.0.1:7997/v1#NAME [--tasks STS12] [--repeat 3]

- `alone`: the requests that a run sends, made before and sent by the same number of threads; answers are read as
  bytes and dropped.
- `run`: `evaluate` without the cache, from reading the data to the scores, without intervals.

Prints distinct sentences per second, and the ratio of the medians, whose goal is at least 0.8.
"""

import argparse
import json
import statistics
import time
from concurrent.futures import ThreadPoolExecutor

import requests

import stsbench as sb
from stsbench.encoders import endpoint


def requests_of(model: str, tasks: str) -> list[bytes]:
    """Return the contents of the requests of a run, in the order in which they are sent."""
    encoder, contents = sb.load(model), list[bytes]()
    assert isinstance(encoder, endpoint.EndpointEncoder)
    send = encoder._post

    def kept(content: dict[str, object]) -> requests.Response:
        contents.append(json.dumps(content).encode())
        return send(content)

    encoder._post = kept  # type: ignore[method-assign]
    sb.evaluate(encoder, tasks.split(","), intervals=sb.Intervals(None), use_cache=False)
    return contents


def alone(model: str, contents: list[bytes]) -> float:
    """Return the seconds that the server takes for some requests."""
    encoder, headers = sb.load(model), {"Content-Type": "application/json"}
    assert isinstance(encoder, endpoint.EndpointEncoder)
    with encoder._session as session, ThreadPoolExecutor(endpoint.AT_ONCE) as pool:

        def send(content: bytes) -> None:
            url = f"{encoder.url}/embeddings"
            session.post(url, data=content, headers=headers, timeout=endpoint.TIMEOUT).raise_for_status()

        start = time.perf_counter()
        list(pool.map(send, contents))
        return time.perf_counter() - start


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", required=True, help="the address and name of a served model")
    parser.add_argument("--tasks", default="STS12")
    parser.add_argument("--repeat", type=int, default=3)
    options = parser.parse_args()

    contents = requests_of(options.model, options.tasks)
    sentences = sum(len(json.loads(content)["input"]) for content in contents)
    seconds: dict[str, list[float]] = {"alone": [], "run": []}
    for _ in range(options.repeat):
        seconds["alone"].append(alone(options.model, contents))
        start = time.perf_counter()
        sb.evaluate(options.model, options.tasks.split(","), intervals=sb.Intervals(None), use_cache=False)
        seconds["run"].append(time.perf_counter() - start)
    print(f"{sentences:,} sentences in {len(contents)} requests, sentences per second as median (least to most)")
    for name, times in seconds.items():
        rates = sorted(sentences / each for each in times)
        print(f"  {name:6} {statistics.median(rates):8.1f} ({rates[0]:.1f} to {rates[-1]:.1f})")
    ratio = statistics.median(seconds["alone"]) / statistics.median(seconds["run"])
    print(f"run / alone {ratio:.2f}; goal: at least 0.8")


if __name__ == "__main__":
    main()
