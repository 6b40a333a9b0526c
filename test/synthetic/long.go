package synthetic

import (
	"bytes"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"

	"fieldmesh.dev/fieldmesh/controller/archive"
	"fieldmesh.dev/fieldmesh/protocols/wire"
)

// Long makes an archive of many trials quickly, and tells its size: the records
// of each section's first trial stand for all of its trials. Nothing in it is
// judged or sealed.
func Long(dir string, o Options) (size int64, err error) {
	info := Info(o)
	a, err := archive.Create(dir, info)
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, a.Close()) }()
	made := map[string]wire.Trial{} // by section
	texts := map[string]map[string][]byte{}
	for _, t := range info.Plan.Trials {
		section := t.Factors["section"]
		if texts[section] == nil {
			made[section] = t
			if texts[section], err = textsOf(info.Plan, t); err != nil {
				return 0, err
			}
		}
		n, err := again(dir, texts[section], made[section].Number, t.Number)
		if err != nil {
			return 0, err
		}
		size += n
	}
	return size, nil
}

// textsOf are the records of an attempt by node, as they stand in files.
func textsOf(p wire.RunPlan, t wire.Trial) (map[string][]byte, error) {
	out := map[string][]byte{}
	for node, records := range Attempt(p, t, 1, Conditions{MB: 20, LatenessShare: 0.001}, map[string]*uint64{}) {
		lines, err := Lines(records)
		if err != nil {
			return nil, err
		}
		out[node] = append(bytes.Join(lines, []byte("\n")), '\n')
	}
	return out, nil
}

// again writes the records of one trial as those of another.
func again(dir string, texts map[string][]byte, from, to int) (size int64, err error) {
	folder := filepath.Join(dir, "trials", fmt.Sprintf("%04d-a1", to), "records")
	if err := os.MkdirAll(folder, 0o755); err != nil {
		return 0, err
	}
	was, is := fmt.Appendf(nil, `"trial":%d,`, from), fmt.Appendf(nil, `"trial":%d,`, to)
	for _, node := range slices.Sorted(maps.Keys(texts)) {
		text := bytes.ReplaceAll(texts[node], was, is)
		if err := os.WriteFile(filepath.Join(folder, node+".ndjson"), text, 0o644); err != nil {
			return 0, err
		}
		size += int64(len(text))
	}
	return size, nil
}
