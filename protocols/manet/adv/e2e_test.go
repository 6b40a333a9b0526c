//go:build e2e

package adv_test

import "testing"

func TestPropertiesMore(t *testing.T) { protocol.MoreProperties(t) }
