//go:build e2e

package dsdv_test

import "testing"

func TestPropertiesMore(t *testing.T) { protocol.MoreProperties(t) }
