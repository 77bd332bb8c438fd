package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"
)

// recipe is what a Dockerfile says of an image that is one program and nothing else.
type recipe struct {
	to     string // where the program lies
	config config
}

// config is an image's, as the engine has it.
type config struct {
	User         string              `json:",omitempty"`
	ExposedPorts map[string]struct{} `json:",omitempty"`
	Env          []string            `json:",omitempty"`
	Entrypoint   []string            `json:",omitempty"`
	Cmd          []string            `json:",omitempty"`
	Healthcheck  *check              `json:",omitempty"`
	Volumes      map[string]struct{} `json:",omitempty"`
	Labels       map[string]string   `json:",omitempty"`
}

// check is how the engine sees whether a container is well.
type check struct {
	Test                           []string
	Interval, Timeout, StartPeriod time.Duration `json:",omitempty"`
}

// read reads a Dockerfile. What it doesn't know is an error: the image would be another one.
func read(text string) (recipe, error) {
	r := recipe{config: config{ExposedPorts: map[string]struct{}{}, Volumes: map[string]struct{}{}}}
	for _, line := range instructions(text) {
		word, rest, _ := strings.Cut(line, " ")
		if err := r.take(word, strings.TrimSpace(rest)); err != nil {
			return recipe{}, fmt.Errorf("%s: %w", line, err)
		}
	}
	if r.to == "" || len(r.config.Entrypoint) == 0 {
		return recipe{}, errors.New("it copies no program, or starts none")
	}
	return r, nil
}

// instructions returns the lines that say something, continued ones as one.
func instructions(text string) (all []string) {
	continued := ""
	for line := range strings.Lines(text) {
		line = strings.TrimSpace(line)
		if line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		if head, more := strings.CutSuffix(line, `\`); more {
			continued += head
			continue
		}
		all, continued = append(all, continued+line), ""
	}
	return all
}

func (r *recipe) take(word, rest string) error {
	switch word {
	case "FROM":
		if rest != "scratch" {
			return errors.New("only scratch is known")
		}
	case "COPY":
		fields := strings.Fields(rest)
		if len(fields) != 2 || r.to != "" {
			return errors.New("one program is copied")
		}
		r.to = strings.TrimPrefix(fields[1], "/")
	case "ENV":
		r.config.Env = append(r.config.Env, strings.Fields(rest)...)
	case "VOLUME":
		r.config.Volumes[rest] = struct{}{}
	case "EXPOSE":
		r.config.ExposedPorts[rest+"/tcp"] = struct{}{}
	case "USER":
		r.config.User = rest
	case "ENTRYPOINT":
		return json.Unmarshal([]byte(rest), &r.config.Entrypoint)
	case "CMD":
		return json.Unmarshal([]byte(rest), &r.config.Cmd)
	case "HEALTHCHECK":
		return r.takeCheck(rest)
	default:
		return errors.New("this instruction isn't known")
	}
	return nil
}

// takeCheck reads --option=DURATION... CMD ["program", ...].
func (r *recipe) takeCheck(rest string) error {
	flags, command, ok := strings.Cut(rest, "CMD ")
	if !ok {
		return errors.New("it has no command")
	}
	c := &check{}
	for _, flag := range strings.Fields(flags) {
		name, value, _ := strings.Cut(flag, "=")
		target, known := map[string]*time.Duration{
			"--interval": &c.Interval, "--timeout": &c.Timeout,
			"--start-period": &c.StartPeriod,
		}[name]
		if !known {
			return fmt.Errorf("%s isn't known", name)
		}
		var err error
		if *target, err = time.ParseDuration(value); err != nil {
			return err
		}
	}
	var program []string
	if err := json.Unmarshal([]byte(command), &program); err != nil {
		return err
	}
	c.Test = append([]string{"CMD"}, program...)
	r.config.Healthcheck = c
	return nil
}
