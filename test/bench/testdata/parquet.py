"""Makes one Parquet table a kind of records.ndjson, as one would with pandas: RECORDS FOLDER."""

import json
import sys
from collections import defaultdict
from pathlib import Path

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq

source, folder = Path(sys.argv[1]), Path(sys.argv[2])
folder.mkdir(parents=True)
kinds = defaultdict(list)
with source.open(encoding="utf-8") as lines:
    for line in lines:
        record = json.loads(line)
        # What has members of its own has no column in the export either.
        kinds[record["kind"]].append({k: v for k, v in record.items() if not isinstance(v, (dict, list))})
for kind, records in kinds.items():
    pq.write_table(pa.Table.from_pandas(pd.DataFrame.from_records(records), preserve_index=False), folder / f"{kind}.parquet", compression="zstd")
