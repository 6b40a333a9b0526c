package wire

// Apps are the phones' apps that a node lets in, all of them: who is not in the
// list is let in no more. The controller tells every node of them, so that a
// phone is paired once and revoked once.
type Apps struct {
	Apps []App `json:"apps" max:"MaxApps"` // no two of a name or a pin
}

// App is one of them, by its key.
type App struct {
	Name string `json:"name" form:"nodeForm"`
	Pin  string `json:"pin" form:"shaForm"` // SHA-256 of its public key
}

// MaxApps bounds the list: far more phones than a campaign has.
const MaxApps = 64

// Validate refuses keys that are none, and two of a name or a key.
func (a Apps) Validate() error {
	c := &checker{}
	a.bounds(c)
	seen := map[string]bool{}
	for i, app := range a.Apps {
		c.element("apps", i)
		c.that(!seen[app.Name], "name", "%q is there twice", app.Name)
		c.that(!seen[app.Pin], "pin", "it is another app's too")
		seen[app.Name], seen[app.Pin] = true, true
		c.leave()
	}
	return c.err()
}
