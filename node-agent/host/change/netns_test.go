package change

import (
	"os"
	"testing"
)

// A namespace that has gone leaves its inode's number to the next one: a change that was
// made in it is not one of the next.
func TestANamespaceIsKnownByItsCookie(t *testing.T) {
	present, err := presentNetns()
	if err != nil {
		t.Fatal(err)
	}
	if present.Cookie == 0 {
		t.Skip("this kernel has no cookies")
	}
	if how := present.lives(present); how == "" {
		t.Error("the present namespace is taken for gone")
	}
	if os.Geteuid() != 0 {
		t.Skip("another namespace's cookie is read by root")
	}
	gone := present
	gone.Cookie += 1 << 40 // of none yet
	if how := gone.lives(present); how != "" {
		t.Errorf("a namespace that had this inode before is taken for one that lives, by %q", how)
	}
	gone.Boot = "another"
	if how := gone.lives(present); how != "" {
		t.Errorf("a namespace of another boot lives, by %q", how)
	}
	older := present
	older.Cookie = 0
	if older.lives(present) == "" {
		t.Error("without a cookie the inode decides, and the namespace is taken for gone")
	}
}
