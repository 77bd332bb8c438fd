package config

import (
	"gopkg.in/yaml.v3"
)

// WorkerConfig holds the settings of a worker.
type WorkerConfig struct {
	Secrets []string // names of those that the programs of its runs may get
}

const workerKey = "worker"

// settings is the table of the settings of one worker. They can be set in the file only.
func (w *WorkerConfig) settings() []setting {
	names := secretNames(&w.Secrets)
	names.advice = "write a list of secrets' names, such as [weather-key]"
	return []setting{
		{"secrets", names, "", "the secrets that programs of runs there may get; units with others run elsewhere"},
	}
}

// workers reads the settings of workers, by name.
func (f *file) workers(line int, n *yaml.Node) {
	for key, value := range f.named(workerKey, line, n, checkTokenName) {
		var w WorkerConfig
		f.fresh(join(workerKey, key.Value), w.settings())(key.Line, value)
		f.config.Worker[key.Value] = w
	}
}
