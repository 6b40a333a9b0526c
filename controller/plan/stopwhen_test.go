package plan

import (
	"bytes"
	"strings"
	"testing"
)

func stopFile(rule string) []byte {
	return designFile("{speed: "+speeds+", tcp: "+variants+"}", "{repetitions: 8, order: randomised_blocks, seed: 1, "+
		"stop_when: "+rule+"}")
}

func TestStopWhenIsRead(t *testing.T) {
	e := parsed(t, stopFile("{of: tcp, half_width_percent: 10, min_blocks: 4}")).Design.StopWhen
	if e == nil || e.Of != "tcp" || *e.HalfWidthPercent != 10 || e.HalfWidthMbps != nil || e.MinBlocks != 4 ||
		e.EveryBlocks != 1 || e.Confidence != 0.95 {
		t.Errorf("read %+v", e)
	}
	e = parsed(t, stopFile("{of: mean, half_width_mbps: 0.5, min_blocks: 3, every_blocks: 2, confidence: 0.9}")).
		Design.StopWhen
	if e == nil || e.Of != StopOfMean || *e.HalfWidthMbps != 0.5 || e.EveryBlocks != 2 || e.Confidence != 0.9 {
		t.Errorf("read %+v", e)
	}
	if e := parsed(t, designFile("{speed: "+speeds+"}", "{repetitions: 8, order: as_listed}")).Design.StopWhen; e !=
		nil {
		t.Errorf("read %+v where none is", e)
	}
}

func TestFaultsOfStopWhen(t *testing.T) {
	for rule, want := range map[string]string{
		"{of: tpc, half_width_percent: 10, " +
			"min_blocks: 4}": `design.stop_when.of: "tpc" is not a defined factor, or mean; allowed: speed, tcp, mean (did you mean "tcp"?)`,
		"{of: tcp, min_blocks: 4}": "design.stop_when: it needs one precision; allowed: either " +
			"half_width_mbps or half_width_percent",
		"{of: tcp, half_width_mbps: 1, half_width_percent: 1, min_blocks: 4}": "design.stop_when: it needs " +
			"one precision",
		"{of: tcp, half_width_percent: 10, min_blocks: 2}": "design.stop_when.min_blocks: 2 is not " +
			"allowed; allowed: a whole number from 3 up to 1000 blocks",
		"{of: tcp, half_width_percent: 10, min_blocks: 8}": "design.stop_when.min_blocks: 8 is not " +
			"allowed with repetitions: 8, which are the most blocks that are driven; allowed: fewer than those",
		"{of: tcp, half_width_percent: 10}": `design.stop_when: key "min_blocks" is missing`,
		"{of: tcp, half_width_percent: 10, min_blocks: 4, " +
			"max_blocks: 6}": `design.stop_when: unknown key "max_blocks"; did you mean "min_blocks"? allowed: of, half_width_mbps, half_width_percent, min_blocks, every_blocks, confidence`,
		"{of: tcp, half_width_percent: 0, min_blocks: 4}": "design.stop_when.half_width_percent: 0 is " +
			"not allowed; allowed: a number above 0",
		"{of: tcp, half_width_percent: 10, min_blocks: 4, confidence: 1}": "design.stop_when.confidence: 1 is not " +
			"allowed",
		"yes please": "design.stop_when: \"yes please\" is not allowed; allowed: a mapping with the keys",
	} {
		_, err := Parse("f", stopFile(rule))
		if err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "\n") {
			t.Errorf("%s:\ngot\n%v\nwant\n%s", rule, err, want)
		}
	}
}

func TestTheFormerNameOfStopWhen(t *testing.T) {
	old := bytes.Replace(stopFile("{of: tcp, half_width_percent: 10, min_blocks: 4}"), []byte("stop_when:"),
		[]byte("enough:"), 1)
	_, err := Parse("f", old)
	if err == nil || !strings.Contains(err.Error(), `design: key "enough" is called "stop_when" now`) {
		t.Errorf("got %v", err)
	}
	if c, err := ParseArchived("f", old, FullScale); err != nil || c.Design.StopWhen == nil ||
		c.Design.StopWhen.Of != "tcp" {
		t.Errorf("of a run: %v", err)
	}
}
