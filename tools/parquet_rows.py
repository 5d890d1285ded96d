# SPDX-License-Identifier: Apache-2.0
# Prints the rows of a Parquet file as JSON lines: {"rows": n} first, then {"row": {...}} each, {"end": true} last.
#
#   python -I parquet_rows.py --packages FOLDER FILE
#
# A batch that cannot be decoded becomes one {"problem": text} for each of its rows; a file that cannot be opened
# {"fatal": text}. Memory holds one batch.
import argparse
import json
import sys

BATCH = 64


def say(record):
    sys.stdout.write(json.dumps(record, default=str) + "\n")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--packages", required=True)
    parser.add_argument("file")
    arguments = parser.parse_args()
    sys.path.insert(0, arguments.packages)
    import pyarrow.parquet as parquet

    try:
        table = parquet.ParquetFile(arguments.file)
    except Exception as error:
        say({"fatal": f"is not a whole Parquet file: {error}"})
        return
    say({"rows": table.metadata.num_rows})
    for group in range(table.num_row_groups):
        left = table.metadata.row_group(group).num_rows
        try:
            for batch in table.iter_batches(batch_size=BATCH, row_groups=[group]):
                for row in batch.to_pylist():
                    say({"row": row})
                    left -= 1
        except Exception as error:
            for _ in range(left):
                say({"problem": f"the row cannot be decoded: {str(error)[:200]}"})
    say({"end": True})


if __name__ == "__main__":
    main()
