/* The libc calls that Fortran cannot bind: open has variable arguments, errno is a
 * macro, and the layout of struct stat and the constants of the headers differ between
 * systems. Fortran calls all other functions directly. */
#define _GNU_SOURCE
#define _FILE_OFFSET_BITS 64

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>
#ifdef __linux__
#include <linux/magic.h>
#include <sys/syscall.h>
#include <sys/vfs.h>
#endif

/* The Fortran interfaces of pwritev and preadv declare off_t as int64_t. */
_Static_assert(sizeof(off_t) == 8, "file offsets must have 64 bits");

int benchio_errno(void) { return errno; }

int benchio_interrupted(int number) { return number == EINTR; }

int benchio_missing(int number) { return number == ENOENT; }

/* The path is at fault, and not, for example, a full or a read-only file system. */
int benchio_unwritable(int number)
{
    return number == ENOENT || number == ENOTDIR || number == EACCES || number == EPERM;
}

/* Opens a file; posix_api.f90 defines the modes. */
int benchio_open(const char *path, int mode, int direct)
{
    static const int flags[] = {
        O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW,
        O_WRONLY | O_CREAT | O_NOFOLLOW,
        O_WRONLY,
        O_WRONLY | O_CREAT | O_NONBLOCK,
        O_RDONLY,
    };
#ifdef O_DIRECT
    const int past_cache = direct ? O_DIRECT : 0;
#else
    const int past_cache = 0;
    mode = direct ? -1 : mode;
#endif
    struct stat about;
    int fd;

    if ((size_t)mode >= sizeof flags / sizeof *flags) {
        errno = EINVAL;
        return -1;
    }
    do
        fd = open(path, flags[mode] | past_cache | O_CLOEXEC, 0666);
    while (fd < 0 && errno == EINTR);
    /* Another process may have created it, but it must have no other name. */
    if (fd >= 0 && mode == 1 && fstat(fd, &about) == 0 && about.st_nlink > 1) {
        close(fd);
        errno = EMLINK;
        return -1;
    }
    return fd;
}

/* Returns the alignment in bytes that O_DIRECT needs, in the file and in memory: 4096 if the
 * kernel does not report it, and 0 if the file system has nothing but the page cache. */
int64_t benchio_direct_alignment(int fd)
{
    int64_t alignment = 4096;

#ifdef __linux__
    struct statfs system;
    if (fstatfs(fd, &system) == 0 &&
        (system.f_type == TMPFS_MAGIC || system.f_type == RAMFS_MAGIC))
        return 0;
#endif
#ifdef STATX_DIOALIGN
    struct statx about;
    if (statx(fd, "", AT_EMPTY_PATH, STATX_DIOALIGN, &about) == 0 &&
        about.stx_mask & STATX_DIOALIGN)
        alignment = about.stx_dio_mem_align > about.stx_dio_offset_align
                        ? about.stx_dio_mem_align
                        : about.stx_dio_offset_align;
#endif
    return alignment;
}

/* The paths that a signal removes or empties. */
static struct guarded {
    char *path;
    int mode;
} *guarded;
static volatile sig_atomic_t guards;
static const int endings[] = {SIGTERM, SIGINT,  SIGHUP,  SIGPIPE,
                              SIGQUIT, SIGUSR1, SIGUSR2, SIGXCPU};
static struct sigaction formerly[sizeof endings / sizeof *endings];

/* Removes a directory and its files, whose names are unknown, in a signal handler, where readdir,
 * which allocates memory, and fork are not safe. Only Linux can remove its files. */
static void remove_directory(const char *path)
{
#ifdef SYS_getdents64
    static _Alignas(struct dirent) char entries[4096];
    const int fd = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    int removed = 1;

    /* Removals may make a pass skip entries: repeat until a pass removes nothing. */
    while (fd >= 0 && removed) {
        long bytes;
        removed = 0;
        lseek(fd, 0, SEEK_SET);
        while ((bytes = syscall(SYS_getdents64, fd, entries, sizeof entries)) > 0)
            for (long at = 0; at < bytes;) {
                const struct dirent *entry = (const struct dirent *)(entries + at);
                removed |= unlinkat(fd, entry->d_name, 0) == 0;
                at += entry->d_reclen;
            }
    }
    if (fd >= 0)
        close(fd);
#endif
    rmdir(path);
}

/* Calls only what is safe in a handler. */
static void remove_guarded(void)
{
    for (int at = 0; at < guards; at++) {
        if (guarded[at].mode == 0)
            unlink(guarded[at].path);
        else if (guarded[at].mode == 2)
            remove_directory(guarded[at].path);
        else if (truncate(guarded[at].path, 0))
            continue;
    }
}

static void end_by_signal(int number)
{
    remove_guarded();
    for (size_t at = 0; at < sizeof endings / sizeof *endings; at++)
        if (endings[at] == number)
            sigaction(number, &formerly[at], NULL);
    raise(number);
}

static void handle_signals(void)
{
    const struct sigaction action = {.sa_handler = end_by_signal};

    for (size_t at = 0; at < sizeof endings / sizeof *endings; at++)
        if (!sigaction(endings[at], NULL, &formerly[at]) &&
            formerly[at].sa_handler != SIG_IGN)
            sigaction(endings[at], &action, NULL);
    /* A write beyond the limit of a file's size then returns an error. */
    signal(SIGXFSZ, SIG_IGN);
}

/* Makes a signal that ends the process remove a file (mode 0), empty it (1), or remove a directory
 * with its files (2). Does nothing if no memory is left. */
void benchio_guard(const char *path, int mode)
{
    static int capacity, is_handled;

    if (guards == capacity) {
        const int more = capacity ? 2 * capacity : 8;
        struct guarded *list = malloc((size_t)more * sizeof *list);
        if (!list)
            return;
        if (guarded)
            memcpy(list, guarded, (size_t)guards * sizeof *list);
        /* The old list stays: a handler may read it now. */
        guarded = list;
        capacity = more;
    }
    guarded[guards].path = strdup(path);
    guarded[guards].mode = mode;
    if (guarded[guards].path)
        guards++;
    if (!is_handled)
        handle_signals();
    is_handled = 1;
}

/* Limits how long a process waits for the others after a failed call: see wait_limit.f90. */
static const unsigned longest_wait = 60;
static char speaker[512], last_words[8192];
static void (*finish_run)(void);
static int is_limited;

static void end_by_alarm(int number)
{
    (void)number;
    if (write(STDERR_FILENO, last_words, strlen(last_words)) < 0) {
        /* Nobody reads it. */
    }
    remove_guarded();
    /* A second alarm ends this process, and so the run, if the call does not. */
    alarm(10);
    finish_run();
}

/* Begins a phase. Messages call this process `name`; `finish` ends all processes. */
void benchio_start_limits(const char *name, void (*finish)(void))
{
    snprintf(speaker, sizeof speaker, "%s", name);
    finish_run = finish;
}

/* After a failure: sets an alarm that ends the run unless the phase ends in time. */
void benchio_limit_wait(const char *failure)
{
    const struct sigaction action = {.sa_handler = end_by_alarm,
                                     .sa_flags = SA_RESETHAND | SA_NODEFER};

    if (is_limited || !finish_run)
        return;
    snprintf(last_words, sizeof last_words,
             "benchio: %s: %s\nbenchio: after %u s the other processes still wait in a call, "
             "perhaps without end: the run is aborted%s%s\n",
             speaker, failure, longest_wait, guards ? "; removed: " : "",
             guards ? guarded[0].path : "");
    is_limited = !sigaction(SIGALRM, &action, NULL);
    if (is_limited)
        alarm(longest_wait);
}

/* Ends a phase, and stops the alarm: all processes have left their calls. */
void benchio_end_limits(void)
{
    if (is_limited)
        alarm(0);
    is_limited = 0;
}

/* Clears the list of paths that a signal removes. */
void benchio_unguard(void)
{
    const int count = guards;

    guards = 0;
    for (int at = 0; at < count; at++)
        free(guarded[at].path);
}

/* Returns whether others may write to a directory that is not sticky, and so replace its files. */
int benchio_is_open_to_others(const char *path)
{
    struct stat about;
    return stat(path, &about) == 0 && S_ISDIR(about.st_mode) &&
           (about.st_mode & (S_IWOTH | S_ISVTX)) == S_IWOTH;
}

/* Opens a directory, unless the path is a symbolic link; returns NULL with errno set on
 * failure. */
DIR *benchio_open_directory(const char *path)
{
    const int fd = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    DIR *directory = fd < 0 ? NULL : fdopendir(fd);
    if (fd >= 0 && !directory) {
        const int number = errno;
        close(fd);
        errno = number;
    }
    return directory;
}

/* Copies the next name into `name`, without a terminating byte. Returns its length, 0 at
 * the end of the directory, or -1 with errno set. */
int benchio_next_name(DIR *directory, char *name, size_t size)
{
    const struct dirent *entry;

    do {
        errno = 0;
        entry = readdir(directory);
        if (!entry)
            return errno ? -1 : 0;
    } while (!strcmp(entry->d_name, ".") || !strcmp(entry->d_name, ".."));
    const size_t length = strlen(entry->d_name);
    if (length > size) {
        errno = ENAMETOOLONG;
        return -1;
    }
    memcpy(name, entry->d_name, length);
    return (int)length;
}

/* Returns the bytes that unprivileged users may still write below a path, or -1 with
 * errno set. */
int64_t benchio_free_bytes(const char *path)
{
    struct statvfs about;
    if (statvfs(path, &about))
        return -1;
    const uint64_t most = INT64_MAX / about.f_frsize;
    return (int64_t)((about.f_bavail < most ? about.f_bavail : most) * about.f_frsize);
}

/* Returns the bytes that this user may still write below a path (INT64_MAX if its file system does
 * not say), or -1 with errno set. */
int64_t benchio_room(const char *path)
{
    struct statvfs about;
    if (statvfs(path, &about))
        return -1;
    if (about.f_blocks == 0)
        return INT64_MAX;
    const uint64_t most = INT64_MAX / about.f_frsize;
    const uint64_t blocks = geteuid() == 0 ? about.f_bfree : about.f_bavail;
    return (int64_t)((blocks < most ? blocks : most) * about.f_frsize);
}

/* Returns the file size limit of this process in bytes. */
int64_t benchio_file_limit(void)
{
    struct rlimit limit;
    if (getrlimit(RLIMIT_FSIZE, &limit) || limit.rlim_cur > INT64_MAX)
        return INT64_MAX;
    return (int64_t)limit.rlim_cur;
}

/* Returns the size of a file in bytes, or -1 with errno set. */
int64_t benchio_file_size(const char *path)
{
    struct stat about;
    return stat(path, &about) == 0 ? (int64_t)about.st_size : -1;
}

/* Stores a file's device and inode number, its identity; returns -1 with errno set on failure. */
int benchio_identity(const char *path, int64_t *device, int64_t *number)
{
    struct stat about;
    if (stat(path, &about))
        return -1;
    *device = (int64_t)about.st_dev;
    *number = (int64_t)about.st_ino;
    return 0;
}

/* Returns whether two paths lead to the same existing file. */
int benchio_is_same_file(const char *one, const char *other)
{
    struct stat first, second;
    return stat(one, &first) == 0 && stat(other, &second) == 0 &&
           first.st_dev == second.st_dev && first.st_ino == second.st_ino;
}

/* Returns whether a path leads to a regular file, or -1 with errno set. */
int benchio_is_regular(const char *path)
{
    struct stat about;
    return stat(path, &about) == 0 ? S_ISREG(about.st_mode) : -1;
}

/* Returns the first byte of a hole at or after `from`; the file's size if there is no hole
 * or the file system does not report holes; or -1 with errno set. */
int64_t benchio_first_hole(int fd, int64_t from)
{
#ifdef SEEK_HOLE
    return lseek(fd, from, SEEK_HOLE);
#else
    (void)from;
    return lseek(fd, 0, SEEK_END);
#endif
}

/* Asks the kernel to drop the file's pages; returns an error number or 0. */
int benchio_drop_pages(int fd)
{
    return posix_fadvise(fd, 0, 0, POSIX_FADV_DONTNEED);
}

/* Returns the number of pages of the file's first `size` bytes that are in the page
 * cache, or -1 with errno set. Maps one window at a time to keep the vector small. */
int64_t benchio_resident_pages(int fd, int64_t size)
{
    const int64_t window = INT64_C(1) << 30;
    const int64_t page = sysconf(_SC_PAGESIZE);
    unsigned char *state = malloc((size_t)(window / page));
    int64_t resident = 0;

    for (int64_t start = 0; state && start < size; start += window) {
        const size_t length = (size_t)(size - start < window ? size - start : window);
        void *map = mmap(NULL, length, PROT_READ, MAP_SHARED, fd, start);
        if (map == MAP_FAILED) {
            free(state);
            return -1;
        }
        const int failed = mincore(map, length, state);
        const int number = errno;
        munmap(map, length);
        if (failed) {
            free(state);
            errno = number;
            return -1;
        }
        for (size_t at = 0; at < (length + (size_t)page - 1) / (size_t)page; at++)
            resident += state[at] & 1;
    }
    if (!state)
        return -1;
    free(state);
    return resident;
}
