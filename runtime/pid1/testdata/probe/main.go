// Command probe is what the tests of aod-init run in a sandbox: one static program that
// misbehaves on demand, in an image that holds nothing else.
package main

import (
	"fmt"
	"os"
	"os/signal"
	"strconv"
	"strings"
	"syscall"
	"time"
)

func main() {
	act, ok := acts[os.Args[1]]
	if !ok {
		fmt.Println("probe: no such act")
		os.Exit(99)
	}
	act(os.Args[2:])
}

var acts map[string]func([]string)

func init() {
	acts = map[string]func([]string){
		"args":      func(a []string) { fmt.Println(len(a), len(strings.Join(a, ""))) },
		"bomb":      bomb,
		"bomb-self": func([]string) { bombSelf() },
		"burn":      burn,
		"catch":     catch,
		"cat":       cat,
		"env":       func([]string) { fmt.Println(strings.Join(os.Environ(), "\n")) },
		"exit":      func(a []string) { os.Exit(number(a[0])) },
		"forge":     forge,
		"hog":       func([]string) { hog() },
		"hog-child": hogChild,
		"kill":      func(a []string) { kill(number(a[0]), a[1:]) },
		"linger":    linger,
		"oom":       func([]string) { oomScores() },
		"orphans":   orphans,
		"tree":      tree,
		"wait":      func([]string) { fmt.Println("ready"); time.Sleep(time.Minute) },
	}
}

func number(s string) int {
	n, err := strconv.Atoi(s)
	if err != nil {
		panic(err)
	}
	return n
}

// fork is fork(2). The child has one thread and a broken Go runtime: it may only make
// raw system calls.
func fork() uintptr {
	pid, _, _ := syscall.RawSyscall6(syscall.SYS_CLONE, uintptr(syscall.SIGCHLD), 0, 0, 0, 0, 0)
	return pid
}

// forkForever keeps the container at its limit and init busy: with signals to pass on
// and, since every other process ends at once, with orphans to reap.
func forkForever() {
	for n := 0; ; n++ {
		if fork() == 0 && n%2 == 1 {
			rawExit()
		}
		syscall.RawSyscall(syscall.SYS_KILL, 1, uintptr(syscall.SIGWINCH), 0)
	}
}

// bombSelf is a fork bomb as the main program. It is ready when a fork was refused.
func bombSelf() {
	for {
		switch fork() {
		case 0:
			forkForever()
		case ^uintptr(0):
			fmt.Println("ready")
			forkForever()
		}
	}
}

// bomb lets a fork bomb work for a while beside the main program, then exits when a fork was refused.
func bomb(a []string) {
	if fork() == 0 {
		forkForever()
	}
	time.Sleep(300 * time.Millisecond)
	for {
		switch fork() {
		case 0:
			rawExit()
		case ^uintptr(0):
			os.Exit(number(a[0]))
		}
	}
}

func burn(a []string) {
	want := time.Duration(number(a[0])) * time.Millisecond
	var r syscall.Rusage
	for time.Duration(r.Utime.Nano()+r.Stime.Nano()) < want {
		_ = syscall.Getrusage(syscall.RUSAGE_SELF, &r)
	}
}

// catch waits for the signal and exits with its number.
func catch(a []string) {
	want := syscall.Signal(number(a[0]))
	c := make(chan os.Signal, 1)
	signal.Notify(c, want)
	fmt.Println("ready")
	<-c
	fmt.Println("caught")
	os.Exit(int(want))
}

// tree outlives the signal itself and exits as its own child, which catches it, does.
func tree(a []string) {
	signal.Notify(make(chan os.Signal, 1), syscall.Signal(number(a[0])))
	p, err := os.StartProcess("/probe", append([]string{"probe", "catch"}, a...), &os.ProcAttr{
		Files: []*os.File{os.Stdin, os.Stdout, os.Stderr},
	})
	if err != nil {
		panic(err)
	}
	state, err := p.Wait()
	if err != nil {
		panic(err)
	}
	os.Exit(state.ExitCode())
}

func cat(a []string) {
	for _, name := range a {
		raw, err := os.ReadFile(name)
		if err != nil {
			raw = []byte(err.Error() + "\n")
		}
		os.Stdout.Write(raw)
	}
}

// oomScores prints its own score, and init's once that is another one: init takes its own back
// when the program has begun.
func oomScores() {
	const file = "/proc/%s/oom_score_adj"
	own, _ := os.ReadFile(fmt.Sprintf(file, "self"))
	its := own
	for range 6000 {
		if its, _ = os.ReadFile(fmt.Sprintf(file, "1")); string(its) != string(own) {
			break
		}
		time.Sleep(10 * time.Millisecond)
	}
	fmt.Printf("%s%s", own, its)
}

// forge writes a report of its own, and leaves a process behind that goes on writing it.
func forge([]string) {
	f, err := os.OpenFile("/run/aod/report", os.O_WRONLY, 0)
	if err != nil {
		panic(err)
	}
	text := []byte(strings.Repeat("forged ", 1000))
	f.Write(text)
	fd := int(f.Fd())
	if fork() == 0 {
		for {
			syscall.RawSyscall(syscall.SYS_LSEEK, uintptr(fd), 0, 0)
			rawWrite(fd, text)
		}
	}
	time.Sleep(20 * time.Millisecond)
	os.Exit(4)
}

func hog() {
	var all [][]byte
	for {
		block := make([]byte, 1<<20)
		for i := range block {
			block[i] = 1
		}
		all = append(all, block)
	}
}

// hogChild survives a child that is killed for memory.
func hogChild([]string) {
	p, err := os.StartProcess("/probe", []string{"probe", "hog"}, &os.ProcAttr{})
	if err != nil {
		panic(err)
	}
	state, err := p.Wait()
	fmt.Println(state, err)
	os.Exit(5)
}

func kill(pid int, signals []string) {
	if pid == 0 {
		pid = os.Getpid()
	}
	for _, s := range signals {
		fmt.Println(syscall.Kill(pid, syscall.Signal(number(s))))
	}
	time.Sleep(50 * time.Millisecond)
}

// linger leaves a deaf process in a session of its own behind.
func linger(a []string) {
	leaveDeaf()
	os.Exit(number(a[0]))
}

func leaveDeaf() {
	if fork() != 0 {
		return
	}
	syscall.RawSyscall(syscall.SYS_SETSID, 0, 0, 0)
	for {
		ts := syscall.Timespec{Sec: 60}
		rawSleep(&ts)
	}
}

// orphans makes n of them and prints how many zombies are left when all have ended.
func orphans(a []string) {
	n := number(a[0])
	for range n {
		orphan()
	}
	left := zombies()
	for deadline := time.Now().Add(2 * time.Minute); left > 0 && time.Now().Before(deadline); left = zombies() {
		time.Sleep(5 * time.Millisecond)
	}
	fmt.Println("zombies", left)
	cat([]string{"/proc/1/status"})
}

func orphan() {
	pid := fork()
	if pid == 0 {
		fork()
		rawExit()
	}
	var status syscall.WaitStatus
	if _, err := syscall.Wait4(int(pid), &status, 0, nil); err != nil {
		fmt.Println("orphan:", err)
	}
}

func zombies() (n int) {
	entries, _ := os.ReadDir("/proc")
	for _, e := range entries {
		raw, _ := os.ReadFile("/proc/" + e.Name() + "/stat")
		if _, rest, ok := strings.Cut(string(raw), ") "); ok && strings.HasPrefix(rest, "Z") {
			n++
		}
	}
	return n
}
