package host

import (
	"reflect"
	"slices"
	"strings"
	"testing"

	"fieldmesh.dev/fieldmesh/node-agent/host/change"
)

//attack:face two changes in one, of which one is checked and the other made | each is of exactly one kind
func TestWhatIsNoChangeIsNotTaken(t *testing.T) {
	link := `{"link":{"interface":"wlan0","up":true}}`
	for text, want := range map[string]string{
		`{}`:     "0 kinds",
		`null`:   "0 kinds",
		`"link"`: "cannot unmarshal",
		`{"link":{"interface":"wlan0","up":true},"sysctl":{"key":"net.ipv4.tcp_sack","value":"0"}}`: "2 kinds",
		`{"bpf_congestion":{"program":"tahoe"},"held_rto":{}}`:                                      "2 kinds",
		`{"reboot":{}}`: `"reboot" is not a kind`,
		`{"Link":{}}`:   `"Link" is not a kind`,
		`{"link":{"interface":"wlan0","up":true,"then":"sh"}}`: `unknown field "then"`,
		`{"link":[]}`: "kind link",
	} {
		for _, changes := range []string{text, link + "," + text} {
			_, err := decodeRequest([]byte(`{"apply":{"scope":"run","changes":[` + changes + `]}}`))
			if err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("%s: %v, want %q", changes, err, want)
			}
		}
	}
	r, err := decodeRequest([]byte(`{"apply":{"scope":"run","changes":[` + link + `,` + link + `]}}`))
	if err != nil || !reflect.DeepEqual(r.Apply.changes(), slices.Repeat([]change.Change{linkUp()}, 2)) {
		t.Errorf("%+v, %v", r, err)
	}
}
