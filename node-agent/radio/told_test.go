package radio

import (
	"testing"
	"time"

	"fieldmesh.dev/fieldmesh/node-agent/measure"
	"fieldmesh.dev/fieldmesh/protocols/wire"
)

type handClock struct{ ns int64 }

func (c *handClock) BootNs() int64   { return c.ns }
func (c *handClock) Wall() time.Time { return time.Time{} }

func reading(ageMs, dbm float64) wire.WiFiReading {
	return wire.WiFiReading{AgeMs: ageMs, RenewedWithinMs: 500, SignalDbm: &dbm, TxBitrateMbps: new(286.0),
		FrequencyMHz: new(5180)}
}

// sampled are the readings of one turn, with their times in ms.
func sampled(t *testing.T, told *Told) (dbm []float64, atMs []int64) {
	t.Helper()
	bodies, err := told.Sample(0)
	if err != nil {
		t.Fatal(err)
	}
	for _, b := range bodies {
		at, is := b.(measure.At)
		if !is {
			t.Fatalf("a reading has no time of its own: %+v", b)
		}
		w := at.Body.(*wire.WiFi)
		if w.Source != wire.SourceAndroid || w.Peer != "" || w.RenewedWithinMs != 500 || w.RxBitrateMbps != nil {
			t.Errorf("the record says %+v", w)
		}
		dbm, atMs = append(dbm, *w.SignalDbm), append(atMs, at.BootNs/1e6)
	}
	return dbm, atMs
}

// A reading is recorded once, at the moment at which the app found it, and is never repeated.
func TestAReadingIsInOneSampleAtItsOwnTime(t *testing.T) {
	clk := &handClock{}
	told := NewTold(clk)
	told.Begin()
	clk.ns = 10e9
	told.Push(reading(40, -61))
	if dbm, atMs := sampled(t, told); len(dbm) != 1 || dbm[0] != -61 || atMs[0] != 9960 {
		t.Errorf("the first turn has %v at %v ms", dbm, atMs)
	}
	told.Push(reading(41, -61)) // its answer was lost, and it is sent again
	told.Push(reading(3000, -50))
	if dbm, atMs := sampled(t, told); len(dbm) != 0 {
		t.Errorf("sent again, and one that is older: %v at %v ms", dbm, atMs)
	}
	clk.ns = 11e9
	told.Push(reading(0, -62))
	if dbm, _ := sampled(t, told); len(dbm) != 1 || dbm[0] != -62 {
		t.Errorf("the next one: %v", dbm)
	}
}

// What was told when no trial was sampled is in none: not of before it, and not of after its end.
func TestAReadingOfAnotherTimeIsInNoTrial(t *testing.T) {
	clk := &handClock{ns: 10e9}
	told := NewTold(clk)
	told.Begin()
	told.Push(reading(0, -61))
	sampled(t, told)
	clk.ns = 30e9 // the trial has ended
	told.Push(reading(0, -70))
	clk.ns = 31e9
	told.Begin()
	if dbm, _ := sampled(t, told); len(dbm) != 0 {
		t.Errorf("the next trial has %v", dbm)
	}
	clk.ns = 32e9
	told.Push(reading(1500, -71)) // found before the trial, told in it
	if dbm, _ := sampled(t, told); len(dbm) != 0 {
		t.Errorf("of before the trial: %v", dbm)
	}
}
