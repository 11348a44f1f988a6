"""From text files to a model on disk, compared with Vowpal Wabbit and scikit-learn: ``make bench-streams``.

Every side is a process, its start included, and writes its model. Files are in the system's file cache; the
sides take turns, and the best of several runs counts. About 12 GB are written to --folder, and stay there.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

import text
from table import Result, Section, write_json
from timing import best_run, compile_bytecode, environment, maxcosine_command, run, version_of

RULE = "pa1"
MEGABYTES, SMALL_MEGABYTES = 2000, 200
SHORT_TURNS = 3  # more turns for short runs, which noise disturbs more
MOST_MB = 150.0

VOWPAL_WABBIT = """
import sys
from vowpalwabbit import Workspace
Workspace(arg_list=["-b", "20", "--loss_function", "hinge", "--quiet", *sys.argv[1:]]).finish()
"""

SCIKIT_LEARN = """
import pickle, sys
from sklearn.datasets import load_svmlight_file
from sklearn.linear_model import SGDClassifier
X, y = load_svmlight_file(sys.argv[1])
X.indices, X.indptr = X.indices.astype("int32"), X.indptr.astype("int32")
learner = SGDClassifier(learning_rate="pa1", eta0=1.0, loss="hinge", penalty=None, max_iter=1, tol=None,
                        shuffle=False, fit_intercept=False)
with open(sys.argv[2], "wb") as file:
    pickle.dump(learner.fit(X, y), file)
"""

Command = Sequence[str | Path]


class Benchmarks:
    """The benchmarks, with the folder of their files."""

    def __init__(self, folder: Path, megabytes: int, small: int, repeats: int) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self.folder, self.repeats = folder, repeats
        self.files, self.small = text.write(folder, megabytes), text.write(folder, small)
        self.model, self.peer_model = folder / "model", folder / "peer.model"

    def train(self, data: Path, *options: str, rule: str = RULE) -> Command:
        return maxcosine_command("train", data, "--rule", rule, "--model", self.model, *options)

    def vowpal_wabbit(self, *arguments: str | Path) -> Command:
        return [sys.executable, "-c", VOWPAL_WABBIT, "-f", self.peer_model, *arguments]

    def speed(self) -> Section:
        """Measure text and caches beside Vowpal Wabbit, and scikit-learn's loader."""
        size = self.files["svm"].stat().st_size / 1e6
        notes = [
            f"data: {size:,.0f} MB of svmlight text, and the same examples in other formats",
            f"examples: {text.DESCRIPTION}",
            f"ours: maxcosine train FILE --rule {RULE} --model MODEL",
            f"peer: {version_of('vowpalwabbit')}, -d FILE -f MODEL -b 20 --loss_function hinge; it parses in "
            "another thread",
            f"scikit-learn: {version_of('scikit-learn')}, load_svmlight_file and one pass of SGDClassifier, "
            f"{self.small['svm'].stat().st_size / 1e6:,.0f} MB",
            f"the best of {self.repeats} runs; of {SHORT_TURNS * self.repeats} for Arrow IPC, Parquet and scikit-learn",
        ]
        title = "From files to a model on disk"
        return Section(title, notes, [*self._text(), *self._words(), *self._caches(), self._scikit_learn()])

    def _text(self) -> list[Result]:
        commands = {
            "two threads": self.train(self.files["svm"], "--threads", "2"),
            "one thread": self.train(self.files["svm"], "--threads", "1"),
            "onepass": self.train(self.files["svm"], "--threads", "2", rule="onepass"),
            "peer": self.vowpal_wabbit("-d", self.files["vw"]),
        }
        found = best_run(self.repeats, commands)
        peer = found["peer"].seconds
        return [
            Result("svmlight text, two threads", found["two threads"].seconds, "s", peer, least=6.0, aim=9.0),
            Result("svmlight text, one thread", found["one thread"].seconds, "s", peer, least=3.5),
            Result("svmlight text, two threads, onepass", found["onepass"].seconds, "s", peer, least=2.0),
        ]

    def _words(self) -> list[Result]:
        data = self.files["words.vw"]
        commands = {"ours": self.train(data, "--bits", "20"), "peer": self.vowpal_wabbit("-d", data)}
        found = best_run(self.repeats, commands)
        return [Result("words in namespaces", found["ours"].seconds, "s", found["peer"].seconds, least=3.5)]

    def _caches(self) -> list[Result]:
        caches = {kind: self.folder / f"cache.{kind}" for kind in ("arrow", "parquet", "vw")}
        for kind in ("arrow", "parquet"):
            run(maxcosine_command("convert", self.files["svm"], "--output", caches[kind]))
        run(self.vowpal_wabbit("-d", self.files["vw"], "--cache_file", caches["vw"], "-k"))
        commands = {
            "arrow": self.train(caches["arrow"]),
            "parquet": self.train(caches["parquet"]),
            "peer": self.vowpal_wabbit("-d", self.files["vw"], "--cache_file", caches["vw"]),
        }
        found = best_run(SHORT_TURNS * self.repeats, commands)
        peer = found["peer"].seconds
        return [
            Result("Arrow IPC; peer: its cache", found["arrow"].seconds, "s", peer, least=2.5),
            Result("Parquet; peer: its cache", found["parquet"].seconds, "s", peer),
        ]

    def _scikit_learn(self) -> Result:
        data = self.small["svm"]
        script = [sys.executable, "-c", SCIKIT_LEARN, data, self.peer_model]
        found = best_run(SHORT_TURNS * self.repeats, {"ours": self.train(data), "peer": script})
        return Result("svmlight text; peer: scikit-learn", found["ours"].seconds, "s", found["peer"].seconds, least=30)

    def memory(self) -> Section:
        """Measure peak memory on a small and on a large file."""
        results = []
        for data, options in (
            (self.small["svm"], []),
            (self.files["svm"], []),
            (self.files["svm"], ["--exact"]),
            (self.files["words.vw"], ["--exact"]),
        ):
            peak = run(self.train(data, *options)).peak_mb - self._model_mb()
            work = " ".join([f"{data.stat().st_size / 1e6:,.0f} MB, {data.name}", *options])
            results.append(Result(work, peak, "MB", most=MOST_MB))
        notes = ["peak of the process, without its weights and its index", f"maxcosine train --rule {RULE}"]
        return Section("Memory", notes, results)

    def _model_mb(self) -> float:
        """Return the size of the weights and the index; another process loads the model."""
        code = (
            "import sys; from maxcosine import model_file\n"
            "model = model_file.load(sys.argv[1]).model\n"
            "index = model.features.index\n"
            "print(model.heads.arrays.v.nbytes + (0 if index is None else index.nbytes))"
        )
        return int(run([sys.executable, "-c", code, self.model]).printed) / 1e6


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--folder", type=Path, required=True, help="where the files are, or are written")
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--megabytes", type=int, default=MEGABYTES)
    parser.add_argument("--small-megabytes", type=int, default=SMALL_MEGABYTES)
    parser.add_argument("--json", type=Path, help="results file to write")
    options = parser.parse_args()
    compile_bytecode()
    found = environment()
    print(", ".join(f"{name} {value}" for name, value in found.items()))
    benchmarks = Benchmarks(options.folder, options.megabytes, options.small_megabytes, options.repeats)
    sections = []
    for measure in (benchmarks.speed, benchmarks.memory):
        sections.append(measure())
        sections[-1].show()
    if options.json is not None:
        write_json(options.json, "streams", found, sections)


if __name__ == "__main__":
    main()
