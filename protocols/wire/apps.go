package wire

// Apps are the phones' apps that a node lets in, all of them: who is not in the
// list is let in no more. The controller tells every node of them, so that a
// phone is paired once and revoked once.
type Apps struct {
	Apps []App `json:"apps"`
}

// App is one of them, by its key.
type App struct {
	Name string `json:"name"`
	Pin  string `json:"pin"` // SHA-256 of its public key; see internal/keys
}

// MaxApps bounds the list: far more phones than a campaign has.
const MaxApps = 64

var (
	peerNameForm = formOf(`^[a-z0-9-]{1,32}$`)
	peerPinForm  = formOf(`^[0-9a-f]{64}$`)
)

// Validate refuses keys that are none, and two of a name or a key.
func (a Apps) Validate() error {
	if len(a.Apps) > MaxApps {
		return Errorf(CodeBadRequest, "apps: %d, at most %d", len(a.Apps), MaxApps)
	}
	seen := map[string]bool{}
	for i, app := range a.Apps {
		if !peerNameForm.MatchString(app.Name) {
			return Errorf(CodeBadRequest, "apps[%d].name: %.80q: allowed are a to z, 0 to 9 and -, 1 to 32 characters", i, app.Name)
		}
		if !peerPinForm.MatchString(app.Pin) {
			return Errorf(CodeBadRequest, "apps[%d].pin: %.80q is not 64 lower-case hexadecimal digits", i, app.Pin)
		}
		if seen[app.Name] || seen[app.Pin] {
			return Errorf(CodeBadRequest, "apps[%d]: %q or its key is there twice", i, app.Name)
		}
		seen[app.Name], seen[app.Pin] = true, true
	}
	return nil
}
