package report

import (
	"testing"

	"fieldmesh.dev/fieldmesh/controller/papers"
)

const ofOrders = " of two variants or protocols that could be compared"

// What is said of a table's orders tells those that are equal from those that are as published.
func TestWhatIsSaidOfOrders(t *testing.T) {
	for _, c := range []struct {
		table papers.Table
		want  string
	}{
		{papers.Table{}, "No two cells that differ as published were driven: no order can be compared."},
		{papers.Table{Compared: 5}, "All 5 orders" + ofOrders + " are as published."},
		{papers.Table{Compared: 5, Turned: 2}, "Of 5 orders" + ofOrders + ", the other way round here: 2."},
		{papers.Table{Compared: 5, Equal: 3},
			"Of 5 orders" + ofOrders + ", the other way round here: 0, equal here: 3."},
	} {
		if got := tableView(c.table).Orders; got != c.want {
			t.Errorf("%q, want %q", got, c.want)
		}
	}
}
