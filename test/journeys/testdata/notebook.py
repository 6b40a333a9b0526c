"""Executes a notebook in a folder and writes what came of it: FROM TO FOLDER.

The crate beside the export is read too: a reader of RO-Crates must take it.
"""

import sys

import nbformat
from nbclient import NotebookClient
from rocrate.rocrate import ROCrate

source, target, folder = sys.argv[1:]
crate = ROCrate(folder)
files = [e for e in crate.data_entities if e.type == "File"]
missing = [e.id for e in files if not (crate.source / e.id).is_file()]
if not files or missing or crate.root_dataset["name"] is None:
    sys.exit(f"the crate describes {len(files)} files, of which are not there: {missing}")
notebook = nbformat.read(source, as_version=4)
NotebookClient(notebook, timeout=300, kernel_name="python3", resources={"metadata": {"path": folder}}).execute()
nbformat.write(notebook, target)
