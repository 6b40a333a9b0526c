package fuzz

import (
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"reflect"
	"strconv"
	"strings"
	"testing"
	"time"
)

// The environment of a target that is tried with many inputs.
const (
	envTime   = "FIELDMESH_FUZZ_TIME"   // how long each seed is changed, a duration
	envCorpus = "FIELDMESH_FUZZ_CORPUS" // the folder of what Go's fuzzer kept of the package's targets
	envSeed   = "FIELDMESH_FUZZ_SEED"   // the seed of what is drawn, a number
)

// Run fuzzes fn as f.Fuzz does. Where FIELDMESH_FUZZ_TIME is set, each seed is
// changed at random for that long, too. An input that fails is left in the
// package's testdata, as Go's fuzzer leaves it.
func Run(f *testing.F, fn any) {
	f.Helper()
	text := os.Getenv(envTime)
	if text == "" {
		f.Fuzz(fn)
		return
	}
	long, err := time.ParseDuration(text)
	if err != nil {
		f.Fatalf("%s: %v", envTime, err)
	}
	seed, err := strconv.ParseUint(os.Getenv(envSeed), 10, 64)
	if err != nil {
		f.Fatalf("%s: %v", envSeed, err)
	}
	typ := reflect.TypeOf(fn)
	m := &mutator{
		name:  f.Name(),
		fn:    fn,
		value: reflect.ValueOf(fn),
		rand:  rand.New(rand.NewPCG(seed, uint64(len(f.Name())))),
		args:  make([]any, typ.NumIn()-1),
	}
	if m.kept, err = kept(filepath.Join(os.Getenv(envCorpus), f.Name()), typ); err != nil {
		f.Fatal(err)
	}
	f.Fuzz(reflect.MakeFunc(typ, func(in []reflect.Value) []reflect.Value {
		m.value.Call(in)
		m.try(in[0].Interface().(*testing.T), in[1:], long)
		return nil
	}).Interface())
}

// Folder makes a folder for one input. A test's own would stay until its last input.
func Folder(t *testing.T) (dir string, remove func()) {
	t.Helper()
	dir, err := os.MkdirTemp("", "fuzz")
	if err != nil {
		t.Fatal(err)
	}
	return dir, func() {
		if err := os.RemoveAll(dir); err != nil {
			t.Error(err)
		}
	}
}

// kept reads the corpus of a target; there need be none.
func kept(folder string, typ reflect.Type) (out [][]any, err error) {
	files, err := os.ReadDir(folder)
	if err != nil && !os.IsNotExist(err) {
		return nil, err
	}
	for _, file := range files {
		text, err := os.ReadFile(filepath.Join(folder, file.Name()))
		if err != nil {
			return nil, err
		}
		lines := strings.Split(strings.TrimSpace(string(text)), "\n")[1:]
		if len(lines) != typ.NumIn()-1 {
			continue // of a former form of the target
		}
		args := make([]any, len(lines))
		for i, line := range lines {
			if args[i], err = parse(line, typ.In(i+1)); err != nil {
				return nil, fmt.Errorf("%s: %w", file.Name(), err)
			}
		}
		out = append(out, args)
	}
	return out, nil
}

// parse reads a value as Go's fuzzer writes it: a Go type and, in brackets, a literal.
func parse(line string, typ reflect.Type) (any, error) {
	_, text, found := strings.Cut(line, "(")
	if !found || !strings.HasSuffix(text, ")") {
		return nil, fmt.Errorf("not a value: %q", line)
	}
	text = strings.TrimSuffix(text, ")")
	switch typ.Kind() {
	case reflect.String, reflect.Slice:
		s, err := strconv.Unquote(text)
		return []byte(s), err
	case reflect.Bool:
		return text == "true", nil
	default:
		n, err := strconv.ParseInt(text, 0, 64)
		return n, err
	}
}

// mutator changes inputs of one target. An input's texts and numbers are []byte and int64.
type mutator struct {
	name  string
	fn    any
	value reflect.Value
	rand  *rand.Rand
	kept  [][]any
	args  []any
	spare []byte
}

// try runs the target with changed inputs for a time, and says how many they were.
func (m *mutator) try(t *testing.T, seed []reflect.Value, long time.Duration) {
	pool := append(m.kept[:len(m.kept):len(m.kept)], plain(seed))
	count := 0
	defer func() {
		if r := recover(); r != nil || t.Failed() {
			m.save(t)
			if r != nil {
				panic(r)
			}
		}
		t.Logf("%d inputs", count)
	}()
	for end := time.Now().Add(long); time.Now().Before(end); {
		for range 64 {
			m.change(pool)
			count++
			m.call(t)
			if t.Failed() {
				return
			}
		}
	}
}

func plain(in []reflect.Value) []any {
	out := make([]any, len(in))
	for i, v := range in {
		switch v.Kind() {
		case reflect.String:
			out[i] = []byte(v.String())
		case reflect.Slice:
			out[i] = v.Bytes()
		case reflect.Bool:
			out[i] = v.Bool()
		case reflect.Uint16:
			out[i] = int64(v.Uint())
		default:
			out[i] = v.Int()
		}
	}
	return out
}

func (m *mutator) call(t *testing.T) {
	switch fn := m.fn.(type) {
	case func(*testing.T, []byte):
		fn(t, m.args[0].([]byte))
	case func(*testing.T, string):
		fn(t, string(m.args[0].([]byte)))
	default:
		in := []reflect.Value{reflect.ValueOf(t)}
		for i, a := range m.args {
			in = append(in, reflect.ValueOf(a).Convert(m.value.Type().In(i+1)))
		}
		m.value.Call(in)
	}
}

// change sets the arguments to a changed input of the pool.
func (m *mutator) change(pool [][]any) {
	from := pool[m.rand.IntN(len(pool))]
	for i, a := range from {
		switch a := a.(type) {
		case []byte:
			old, _ := m.args[i].([]byte)
			b := append(old[:0], a...)
			for range 1 + m.rand.IntN(4) {
				b = m.step(b, pool[m.rand.IntN(len(pool))][i].([]byte))
			}
			m.args[i] = b
		case bool:
			m.args[i] = m.rand.IntN(2) == 0
		case int64:
			m.args[i] = a
			if m.rand.IntN(2) == 0 {
				m.args[i] = edges[m.rand.IntN(len(edges))]
			}
		}
	}
}

// edges are numbers at the ends of their types, and what is often a length.
var edges = []int64{0, 1, -1, 7, 8, 127, 128, 255, 256, 32767, 32768, 65535, 65536, 1<<31 - 1, 1 << 31, 1<<32 - 1,
	1 << 32, 1<<53 + 1, 1<<63 - 1, -1 << 63}

const largest = 16 << 10 // bytes of an input that grows

// step changes b once. Other is another input, from which a piece may come.
func (m *mutator) step(b, other []byte) []byte {
	if len(b) == 0 {
		return append(b, other...)
	}
	r := m.rand
	at := r.IntN(len(b))
	to := at + 1 + r.IntN(min(len(b)-at, 64))
	switch r.IntN(10) {
	case 0:
		b[at] ^= 1 << r.IntN(8)
	case 1:
		b[at] = byte(r.Uint32())
	case 2:
		b[at] += byte(r.IntN(33) - 16)
	case 3: // a number of up to eight bytes, either end first
		n := uint64(edges[r.IntN(len(edges))])
		width := min(1<<r.IntN(4), len(b)-at)
		big := r.IntN(2) == 0
		for i := range width {
			j := at + i
			if big {
				j = at + width - 1 - i
			}
			b[j] = byte(n >> (8 * i))
		}
	case 4:
		b = append(b[:at], b[to:]...)
	case 5:
		b = b[:at]
	case 6: // a piece again
		b = m.insert(b, at, b[at:to])
	case 7: // a piece of another
		if len(other) > 0 {
			from := r.IntN(len(other))
			b = m.insert(b, at, other[from:from+1+r.IntN(min(len(other)-from, 64))])
		}
	case 8: // a number in text
		for to = at; to < len(b) && b[to] >= '0' && b[to] <= '9'; to++ {
		}
		text := strconv.AppendInt(nil, edges[r.IntN(len(edges))], 10)
		b = m.insert(append(b[:at], b[to:]...), at, text)
	case 9:
		c := r.IntN(len(b))
		b[at], b[c] = b[c], b[at]
	}
	return b
}

func (m *mutator) insert(b []byte, at int, piece []byte) []byte {
	if len(b)+len(piece) > largest {
		return b
	}
	m.spare = append(append(m.spare[:0], piece...), b[at:]...)
	return append(b[:at], m.spare...)
}

// save writes the arguments where `go test` finds them as a seed.
func (m *mutator) save(t *testing.T) {
	text := "go test fuzz v1\n"
	for i, a := range m.args {
		text += fmt.Sprintf("%s(%s)\n", m.value.Type().In(i+1), literal(a))
	}
	name := filepath.Join("testdata", "fuzz", m.name, fmt.Sprintf("%016x", m.rand.Uint64()))
	if err := os.MkdirAll(filepath.Dir(name), 0o777); err != nil {
		t.Error(err)
	} else if err := os.WriteFile(name, []byte(text), 0o666); err != nil {
		t.Error(err)
	} else {
		t.Logf("the input is in %s", name)
	}
}

func literal(a any) string {
	if b, ok := a.([]byte); ok {
		return strconv.Quote(string(b))
	}
	return fmt.Sprint(a)
}
