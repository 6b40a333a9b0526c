package descriptor

import (
	"errors"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// What has to be there is told where that is why a call failed.
func TestWhatIsNeededIsToldWhereItIsMissing(t *testing.T) {
	for errno, tells := range map[unix.Errno]bool{unix.ENOSYS: true, unix.EPERM: true, unix.EACCES: true,
		unix.EMFILE: false, unix.EINVAL: false} {
		if told := strings.Contains(because(errno).Error(), "Linux 5.6"); told != tells {
			t.Errorf("%v: %v", errno, because(errno))
		}
	}
}

// A program that has ended and was not waited for yet is closed to its own user, too. It has no sockets.
func TestAProgramThatHasEndedHasNoSockets(t *testing.T) {
	const nobody = 65534
	done := make(chan error)
	go func() {
		runtime.LockOSThread() // it ends with this function: its user is another
		done <- func() error {
			if os.Geteuid() == 0 {
				if _, _, errno := unix.RawSyscall(unix.SYS_SETRESUID, nobody, nobody, nobody); errno != 0 {
					return errno
				}
			}
			c := exec.Command("sleep", "60")
			if err := c.Start(); err != nil {
				return err
			}
			p, err := Of(c.Process.Pid)
			if err == nil {
				err = c.Process.Kill()
			}
			if err == nil {
				err = unix.Waitid(unix.P_PID, c.Process.Pid, nil, unix.WEXITED|unix.WNOWAIT, nil)
			}
			if err != nil {
				return err
			}
			sockets, err := p.Sockets()
			if len(sockets) > 0 {
				t.Errorf("it has %v", sockets)
			}
			_ = c.Wait() // it was killed
			return errors.Join(err, p.Close())
		}()
	}()
	if err := <-done; err != nil {
		t.Error(err)
	}
}

// A signal while the end of a program is waited for does not hide it.
func TestASignalDoesNotHideAnEnd(t *testing.T) {
	c := exec.Command("sleep", "60")
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	p, err := Of(c.Process.Pid)
	if err != nil {
		t.Fatal(errors.Join(err, c.Process.Kill(), c.Wait()))
	}
	defer p.Close()
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	waiting := unix.Gettid()
	go func() {
		time.Sleep(20 * time.Millisecond)
		_ = unix.Tgkill(os.Getpid(), waiting, unix.SIGURG)
		time.Sleep(20 * time.Millisecond)
		_ = c.Process.Kill()
	}()
	if !p.ends() {
		t.Error("the program does not end")
	}
	_ = c.Wait() // it was killed
}

func TestAddressesOfSockets(t *testing.T) {
	for want, sa := range map[string]unix.Sockaddr{
		"10.0.0.1:53":      &unix.SockaddrInet4{Port: 53, Addr: [4]byte{10, 0, 0, 1}},
		"10.0.0.2:53":      &unix.SockaddrInet6{Port: 53, Addr: [16]byte{10: 0xff, 0xff, 10, 0, 0, 2}},
		"[fe80::1]:65535":  &unix.SockaddrInet6{Port: 65535, Addr: [16]byte{0: 0xfe, 0x80, 15: 1}},
		"invalid AddrPort": &unix.SockaddrUnix{Name: "/x"},
	} {
		if got := AddrPort(sa).String(); got != want {
			t.Errorf("%+v is at %s, want %s", sa, got, want)
		}
	}
}
