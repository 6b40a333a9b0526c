package pairing

import (
	"image"
	"image/color"
	"os"
	"strings"
	"testing"

	"github.com/makiuchi-d/gozxing"
	"github.com/makiuchi-d/gozxing/qrcode"

	"fieldmesh.dev/fieldmesh/protocols/pairing"
)

// The picture, as a dark terminal shows it, is read by a program that reads QR
// codes. ZXing's way of finding a code takes the data of 1 code in 500 for a
// corner (6 of 3,000, at whatever size); it is then typed, or another one made.
func TestThePictureIsTheCode(t *testing.T) {
	const codes, most = 200, 5 // more than 5 are unread once in 200,000 times
	unread := 0
	for range codes {
		code, err := pairing.New("192.168.108.211:7447", strings.Repeat("0123456789abcdef", 4))
		if err != nil {
			t.Fatal(err)
		}
		drawn, err := Picture(code.String())
		if err != nil {
			t.Fatal(err)
		}
		read, err := readPicture(t, drawn)
		if err != nil {
			unread++
			t.Logf("%v in\n%s", err, drawn)
		} else if read != code.String() {
			t.Errorf("the picture says %q, the code is %q", read, code)
		}
	}
	if unread > most {
		t.Errorf("%d of %d codes are not read", unread, codes)
	}
}

// readPicture reads what a terminal shows, with eight pixels a module.
func readPicture(t *testing.T, drawn string) (string, error) {
	t.Helper()
	lines := strings.Split(strings.TrimSuffix(drawn, "\n"), "\n")
	width := len([]rune(lines[0]))
	if width > 78 || len(lines) > 24 {
		t.Errorf("the picture has %d columns and %d lines: no terminal of 80 by 24 shows it", width, len(lines))
	}
	const module = 8
	picture := image.NewGray(image.Rect(0, 0, width*module, 2*len(lines)*module))
	for row, line := range lines {
		for column, r := range []rune(line) {
			for half, light := range []bool{r == '█' || r == '▀', r == '█' || r == '▄'} {
				if light {
					fill(picture, column*module, (2*row+half)*module, module)
				}
			}
		}
	}
	bitmap, err := gozxing.NewBinaryBitmapFromImage(picture)
	if err != nil {
		t.Fatal(err)
	}
	read, err := qrcode.NewQRCodeReader().Decode(bitmap, nil)
	if err != nil {
		return "", err
	}
	return read.GetText(), nil
}

// The picture of the example in protocols/pairing, which the phone app's tests
// read through the reader of its camera.
func TestThePictureThatTheAppReads(t *testing.T) {
	const file = "../../protocols/pairing/golden/picture.txt"
	drawn, err := Picture("FIELDMESH-PAIR/192.168.8.2:7447/AAAQEAYEAUDAOCAJBIFQYDIOB4ASGRLHRGV433YBENCWPCNLZXXXATD3")
	if err != nil {
		t.Fatal(err)
	}
	kept, err := os.ReadFile(file)
	if err != nil || string(kept) != drawn {
		t.Errorf("%s (%v) is not the picture:\n%s", file, err, drawn)
	}
}

func fill(picture *image.Gray, x, y, size int) {
	for dy := range size {
		for dx := range size {
			picture.SetGray(x+dx, y+dy, color.Gray{Y: 255})
		}
	}
}
