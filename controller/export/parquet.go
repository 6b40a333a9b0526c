package export

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/parquet-go/parquet-go"
	"github.com/parquet-go/parquet-go/compress/zstd"

	"fieldmesh.dev/fieldmesh/controller/archive"
	"fieldmesh.dev/fieldmesh/internal/influx"
	"fieldmesh.dev/fieldmesh/internal/version"
	"fieldmesh.dev/fieldmesh/protocols/wire"
)

// groupRows bounds what a table holds in memory before it goes to disk: a row
// group of some thirty columns is then a few megabytes.
const groupRows = 16 << 10

// windowColumn is the one column that no record has and every reader wants.
var windowColumn = influx.Column{
	Name: "t_window_s", Type: influx.Float, Unit: "s",
	Meaning: "time since this node's measuring window of the attempt opened, by its own boot clock; absent where it " +
		"had none",
}

// tables are the Parquet files of a run, one a measurement; each is made when
// its first row comes.
type tables struct {
	dir     string
	encoder *influx.Encoder
	schema  map[string]influx.Measurement
	open    map[string]*table
	cells   []influx.Cell
	unknown map[string]int // records by kind that no table is for
}

// table is one file being written.
type table struct {
	file    *os.File
	writer  *parquet.GenericWriter[any]
	columns []influx.Column
	place   []int // column → its place in a Parquet row
	row     parquet.Row
	rows    int
}

// columnsOf are a table's columns.
func columnsOf(m influx.Measurement) []influx.Column { return append(m.Columns(), windowColumn) }

func newTables(dir string) *tables {
	t := &tables{
		dir: dir, encoder: influx.NewEncoder(), schema: map[string]influx.Measurement{},
		open: map[string]*table{}, unknown: map[string]int{},
	}
	for _, m := range influx.Schema() {
		t.schema[m.Name] = m
	}
	return t
}

// fileOf is a measurement's file: records/gps.parquet of fm_gps.
func fileOf(measurement string) string {
	return filepath.Join("records", strings.TrimPrefix(measurement, "fm_")+".parquet")
}

// attempt adds an attempt's records, or with attempt 0 those of no attempt.
func (t *tables) attempt(from lines, k wire.TrialKey) error {
	opened, err := windows(from.a, k)
	if err != nil {
		return err
	}
	return from.each(k, func(line []byte) error {
		p, err := t.encoder.Parse(line)
		if err != nil {
			return err
		}
		var name string
		t.cells, name, err = t.encoder.Row(t.cells, p)
		if errors.Is(err, influx.ErrNoMeasurement) {
			t.unknown[p.Header.Kind]++
			return nil
		}
		if err != nil {
			return err
		}
		since := influx.Cell{}
		if open, ok := opened[p.Header.Node]; ok {
			since = influx.Cell{Present: true, Float: float64(p.Header.TBootNs-open.OpenBootNs) / 1e9}
		}
		t.cells = append(t.cells, since)
		return t.add(name, t.cells)
	})
}

// windows are the nodes' measuring windows of an attempt, each by its own boot clock.
func windows(a *archive.Archive, k wire.TrialKey) (map[string]wire.Window, error) {
	out := map[string]wire.Window{}
	if k.Trial == 0 {
		return out, nil
	}
	err := eachOf(lines{a: a}, k, func(h wire.Header, w *wire.Window) error {
		out[h.Node] = *w
		return nil
	})
	return out, err
}

func (t *tables) add(name string, cells []influx.Cell) error {
	w := t.open[name]
	if w == nil {
		var err error
		if w, err = t.create(name); err != nil {
			return err
		}
		t.open[name] = w
	}
	return w.add(cells)
}

func (t *tables) create(name string) (*table, error) {
	return createTable(filepath.Join(t.dir, fileOf(name)), name, columnsOf(t.schema[name]))
}

func createTable(path, name string, columns []influx.Column) (*table, error) {
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return nil, fmt.Errorf("make folder for tables: %w", err)
	}
	f, err := os.Create(path)
	if err != nil {
		return nil, fmt.Errorf("make table: %w", err)
	}
	w := &table{file: f, columns: columns}
	schema := schemaOf(name, w.columns)
	for _, c := range w.columns {
		leaf, ok := schema.Lookup(c.Name)
		if !ok {
			return nil, errors.Join(fmt.Errorf("make table %s: no column %q", path, c.Name), f.Close())
		}
		w.place = append(w.place, leaf.ColumnIndex)
	}
	w.row = make(parquet.Row, len(w.columns))
	w.writer = parquet.NewGenericWriter[any](f, schema, parquet.Compression(&zstd.Codec{Level: zstd.SpeedFastest}),
		parquet.CreatedBy("fieldmesh", version.Version, version.Commit))
	return w, nil
}

// schemaOf makes every column optional: unknown is absent.
func schemaOf(name string, columns []influx.Column) *parquet.Schema {
	g := parquet.Group{}
	for _, c := range columns {
		var n parquet.Node
		switch c.Type {
		case influx.Integer:
			n = parquet.Int(64)
		case influx.Float:
			n = parquet.Leaf(parquet.DoubleType)
		case influx.Boolean:
			n = parquet.Leaf(parquet.BooleanType)
		case influx.Text:
			// Few different values each: a dictionary makes them a byte.
			n = parquet.Encoded(parquet.String(), &parquet.RLEDictionary)
		}
		g[c.Name] = parquet.Optional(n)
	}
	return parquet.NewSchema(name, g)
}

func (w *table) add(cells []influx.Cell) error {
	for i, c := range cells {
		v, level := parquet.NullValue(), 0
		if c.Present {
			v, level = value(w.columns[i].Type, c), 1
		}
		w.row[w.place[i]] = v.Level(0, level, w.place[i])
	}
	if _, err := w.writer.WriteRows([]parquet.Row{w.row}); err != nil {
		return fmt.Errorf("write %s: %w", w.file.Name(), err)
	}
	if w.rows++; w.rows%groupRows != 0 {
		return nil
	}
	if err := w.writer.Flush(); err != nil {
		return fmt.Errorf("write %s: %w", w.file.Name(), err)
	}
	return nil
}

func value(t influx.Type, c influx.Cell) parquet.Value {
	switch t {
	case influx.Integer:
		return parquet.Int64Value(c.Integer)
	case influx.Float:
		return parquet.DoubleValue(c.Float)
	case influx.Boolean:
		return parquet.BooleanValue(c.Boolean)
	}
	return parquet.ByteArrayValue([]byte(c.Text))
}

// close ends every file, the first error kept with the rest.
func (t *tables) close() error {
	var all error
	for _, w := range t.open {
		all = errors.Join(all, w.close())
	}
	return all
}

func (w *table) close() error { return errors.Join(w.writer.Close(), w.file.Sync(), w.file.Close()) }

// writeTables writes every record of the run into its table and lists the
// files, and the kinds of records that no table holds.
func writeTables(from lines, dir string) (files []string, unknown map[string]int, err error) {
	t := newTables(dir)
	defer func() { err = errors.Join(err, t.close()) }()
	keys, err := from.keys()
	if err != nil {
		return nil, nil, err
	}
	for _, k := range keys {
		if err := t.attempt(from, k); err != nil {
			return nil, nil, fmt.Errorf("make tables: %w", err)
		}
	}
	for _, m := range influx.Schema() {
		if t.open[m.Name] != nil {
			files = append(files, fileOf(m.Name))
		}
	}
	return files, t.unknown, nil
}
