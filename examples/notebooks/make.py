"""Writes and runs the notebooks: `python make.py`, in this folder. Packages: compflow, nbclient, nbformat, ipykernel, matplotlib, polars.

What is in a cell is written here, so that a notebook can be compared with what it was; its outputs are those of a run.
"""

from pathlib import Path

import nbformat
from nbclient import NotebookClient
from nbformat.v4 import new_code_cell as code
from nbformat.v4 import new_markdown_cell as text
from nbformat.v4 import new_notebook

HERE = Path(__file__).parent

DIGITS = [
    text(
        "# Digits over one another\n\n"
        "Images of a handwritten digit, or of two drawn over one another: 8×8 pixels, no network in between. Which of "
        "five digits are in an image? Nobody has said what any of them looks like."
    ),
    code("""import matplotlib.pyplot as plt
import numpy as np
import polars as pl

import compflow
from compflow import CGM, KMeans, metrics

trial = pl.read_parquet("../../data/digits/d2_n750_test.parquet").filter(pl.col("trial") == 0)
X = trial["embedding"].to_numpy()
truth = trial["labels"].to_list()
X.shape, truth[:5]"""),
    code("""def show(images, titles, columns=10):
    rows = -(-len(images) // columns)
    figure, axes = plt.subplots(rows, columns, figsize=(columns, 1.25 * rows), dpi=60)
    for axis in axes.flat:
        axis.axis("off")
    for axis, image, title in zip(axes.flat, images, titles):
        axis.imshow(np.reshape(image, (8, 8)), cmap="gray_r")
        axis.set_title(title, fontsize=9)
    plt.show()


show(X[:20], ["+".join(map(str, labels)) for labels in truth])"""),
    text(
        "What is drawn over another is the element-wise maximum, so that is g. Five singletons; their ten unions come by "
        "themselves. Pixels are taken as they are: two digits have more ink than one."
    ),
    code("""model = CGM(5, composer="max", normalize=None).fit(X)
model.sets_[:5]"""),
    text("The singletons that were found, and some of the unions that are composed of them:"),
    code("""parts = model.singletons_
show(parts, [str(at) for at in range(5)], columns=5)
unions = [members for members in model.label_sets_ if len(members) == 2]
show([np.max(parts[list(members)], axis=0) for members in unions], ["+".join(map(str, members)) for members in unions])"""),
    text("Which of them is which digit: the one that most examples of it have."),
    code("""names = {}
for singleton in range(5):
    alone = [labels[0] for labels, found in zip(truth, model.sets_) if found == (singleton,) and len(labels) == 1]
    names[singleton] = max(set(alone), key=alone.count) if alone else "?"
called = ["+".join(sorted(str(names[at]) for at in members)) for members in model.sets_]
right = ["+".join(map(str, labels)) for labels in truth]
print(f"{np.mean(np.equal(called, right)):.0%} of the images have the right digits")
wrong = [at for at in range(len(X)) if called[at] != right[at]]
show(X[wrong[:10]], [f"{right[at]} as {called[at]}" for at in wrong[:10]], columns=5)"""),
    text("`cri` says how often which set contains which is right; a method that does not look for unions cannot know."),
    code("""baseline = KMeans(15, normalize=None).fit(X)
{name: {"cri": round(metrics.cri(truth, found.sets_), 3), "ari": round(metrics.ari(truth, found.sets_), 3)}
 for name, found in (("CGM", model), ("k-means", baseline))}"""),
    text(
        "How many digits are there, if nobody says? The number whose clusters are worth most; see docs/selection.md. Here "
        "five is the most stable, and eight is worth more: people write a digit in more than one way, and each way is a "
        "cluster."
    ),
    code("""selection = compflow.select_k(CGM(composer="max", normalize=None, restarts=10), X, range(3, 9))
selection"""),
    code("""figure, axis = plt.subplots(figsize=(5, 2.5), dpi=60)
axis.plot(range(3, 9), [one["worth"] for one in selection], marker="o")
axis.set_xlabel("digits")
axis.set_ylabel("worth")
plt.show()"""),
    text("The model as a run that the command reads, with a report:"),
    code("""import tempfile

folder = model.save(tempfile.mkdtemp() + "/digits", X, truth)
pl.DataFrame(compflow.Results(folder).summary)"""),
]

TOPICS = [
    text(
        "# Topics\n\n"
        "Made-up documents about one topic or two, as TF-IDF vectors reduced to 32 dimensions. Documents about two topics "
        "are near the sum of what is near each of them."
    ),
    code("""import matplotlib.pyplot as plt
import numpy as np
import polars as pl

import compflow
from compflow import CKM, metrics

documents = pl.read_parquet("../../data/topics/d2_n750_test.parquet").filter(pl.col("trial") == 0)
X = documents["embedding"].to_numpy()
truth = [tuple(labels) for labels in documents["labels"].to_list()]
X.shape, truth[:3]"""),
    text("Which g? A tenth of the documents with their topics are enough to find out."),
    code("""import tempfile

some = np.arange(0, len(X), 10)
judged = compflow.fit_composer(X[some], [truth[at] for at in some], tempfile.mkdtemp() + "/g.safetensors")
judged"""),
    code("""model = CKM(5, composer="sum").fit(X)
print(f"cri {metrics.cri(truth, model.sets_):.3f}, ari {metrics.ari(truth, model.sets_):.3f}")
pl.DataFrame(model.clusters_).select("label", "clusters", "size").sort("size", descending=True).head()"""),
    text("With a few documents named, the clusters have names from the start:"),
    code("""seeds = [None] * len(X)
for topic in sorted({name for labels in truth for name in labels}):
    seeds[truth.index((topic,))] = (topic,)
named = CKM(5, composer="sum").fit(X, seeds=seeds)
called = [tuple(sorted(named.names_[at] for at in members)) for members in named.sets_]
print(named.names_)
print(f"{np.mean([ours == tuple(sorted(theirs)) for ours, theirs in zip(called, truth)]):.0%} of the documents have the right topics")"""),
    text("Documents by the first two principal components; those of two topics in the colour between theirs."),
    code("""centred = X / np.linalg.norm(X, axis=1, keepdims=True)
centred = centred - centred.mean(axis=0)
plane = centred @ np.linalg.svd(centred, full_matrices=False)[2][:2].T
palette = plt.get_cmap("tab10")(range(5))[:, :3]
colours = [palette[list(members)].mean(axis=0) for members in named.sets_]
size = [len(members) for members in named.sets_]
figure, axis = plt.subplots(figsize=(5, 4), dpi=60)
axis.scatter(*plane.T, c=colours, s=[18 if count == 1 else 9 for count in size])
for at, name in enumerate(named.names_):
    own = [row for row, members in enumerate(named.sets_) if members == (at,)]
    axis.annotate(name, plane[own].mean(axis=0), ha="center", weight="bold")
axis.axis("off")
plt.show()"""),
    text("New documents go to the clusters that are there, with how surely:"),
    code("""found = compflow.assign(named, X[:3])
[(tuple(named.names_[at] for at in members), round(float(margin), 3)) for members, margin in zip(found["sets"], found["margin"])]"""),
]


def make(name: str, cells: list) -> None:
    """Writes a notebook and runs it."""
    notebook = new_notebook(
        cells=cells,
        metadata={"kernelspec": {"name": "python3", "display_name": "Python 3", "language": "python"}},
    )
    for at, cell in enumerate(notebook.cells):
        cell.id = f"{name}-{at}"
    NotebookClient(notebook, timeout=300, resources={"metadata": {"path": str(HERE)}}).execute()
    for cell in notebook.cells:
        # When it ran says nothing, and differs every time.
        cell.metadata.pop("execution", None)
    nbformat.write(notebook, HERE / f"{name}.ipynb")


if __name__ == "__main__":
    make("digits", DIGITS)
    make("topics", TOPICS)
