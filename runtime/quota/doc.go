// Package quota bounds what untrusted code writes by project quotas of the kernel, where a file system keeps them: ext4
// and XFS on Linux, for a process that may set them. There the kernel refuses the first byte too many, and counts
// deleted files that are open.
//
//	New      the project of a directory: no other directory of the file system has it
//	Give     files and directories become its own, and what is made below them later
//	Limit    from now on they hold so much
//	Met      whether a write was refused
//	Take     a file that leaves belongs to no project again
//
// Nobody remembers which projects are taken: the number of a project follows from the inode of its directory, and
// its files carry it. The owner of a file may give it another project unless a seccomp profile forbids that: it does
// in sandboxes. It must not know what the directories are for.
//
// Its Go API may change with every release: see docs/stability.md.
package quota
