package capsule

import (
	"slices"
	"strings"
)

// mostImages bounds the images of Capsule.Images.
const mostImages = 32

// imagesIn is Capsule.Images of a Dockerfile.
func imagesIn(text string, all [][]string, stages map[string]bool) (images []string) {
	values := argValues(strings.Split(text, "\n"))
	for _, fields := range all {
		for _, name := range namesIn(fields) {
			found, clear := resolve(name, values, mostNested)
			if !clear {
				continue
			}
			for _, image := range found {
				_, isStage := stages[strings.ToLower(image)]
				own := isStage || image == "scratch" || strings.Trim(image, "0123456789") == ""
				if !own && !slices.Contains(images, image) && len(images) < mostImages {
					images = append(images, image)
				}
			}
		}
	}
	return images
}

// namesIn are the images and stages that an instruction names.
func namesIn(fields []string) (names []string) {
	word := strings.ToUpper(fields[0])
	if word == fromWord {
		image, _ := fromLine(fields[1:])
		return []string{image}
	}
	flags, _ := flagsOf(strings.Join(fields[1:], " "))
	for _, flag := range flags {
		names = append(names, imagesOf(word, flag)...)
	}
	return names
}
