package documents

import (
	"image/png"
	"os"
	"path/filepath"
	"testing"
	"unicode/utf8"
)

// What F-Droid shows of the app is there in the languages of the app's own texts, as long as stores let it be, with
// pictures of screens.
func TestTheStoreHasTheAppsTextsAndPictures(t *testing.T) {
	const store, texts = "../../fastlane/metadata/android/", "../../android-app/ui/src/main/res/values"
	for locale, of := range map[string]string{"en-US": "", "de-DE": "-de"} {
		if _, err := os.Stat(texts + of + "/strings.xml"); err != nil {
			t.Error(err)
		}
		for name, most := range map[string]int{"title": 30, "short_description": 80, "full_description": 4000} {
			text, err := os.ReadFile(store + locale + "/" + name + ".txt")
			if n := utf8.RuneCount(text) - 1; err != nil || n < 1 || n > most {
				t.Errorf("%s of %s has %d characters, at most %d are allowed: %v", name, locale, n, most, err)
			}
		}
	}
	for what, pattern := range map[string]string{store + "*": "/title.txt", texts + "*": "/strings.xml"} {
		if found, err := filepath.Glob(what + pattern); err != nil || len(found) != 2 {
			t.Errorf("texts are in %q: %v", found, err)
		}
	}
	pictures, err := filepath.Glob(store + "en-US/images/phoneScreenshots/*.png")
	if err != nil || len(pictures) == 0 {
		t.Fatalf("there is no picture: %v", err)
	}
	for _, path := range pictures {
		f, err := os.Open(path)
		if err != nil {
			t.Fatal(err)
		}
		size, err := png.DecodeConfig(f)
		_ = f.Close()
		if err != nil || size.Width < 320 || size.Height > 3840 {
			t.Errorf("%s has %d by %d pixels: %v", path, size.Width, size.Height, err)
		}
	}
}
