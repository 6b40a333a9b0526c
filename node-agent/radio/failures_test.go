package radio

import (
	"net"
	"slices"
	"strings"
	"testing"
)

func TestFailuresPicksWhatMatters(t *testing.T) {
	feedback := `{"station":{"peer":"02:00:00:00:00:02"}}
{"tx_failed":{"peer":"02:00:00:00:00:03"}}
{"tx_failed":{"peer":"nobody"}}
{"tx_failed":{
{"survey":{"channel":6},"dropped":3}
{"tx_failed":{"peer":"02:00:00:00:00:04","frame":"YWJj"},"dropped":3}
`
	var got []string
	readFailures(strings.NewReader(feedback), func(mac net.HardwareAddr, frame []byte) {
		got = append(got, mac.String()+" "+string(frame))
	})
	if !slices.Equal(got, []string{"02:00:00:00:00:03 ", "02:00:00:00:00:04 abc"}) {
		t.Errorf("failures of %v", got)
	}
}
