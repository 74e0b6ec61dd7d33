/* Preloaded into benchio: file systems report free space, as if only a quota were used up, and the
 * wait for other processes ends after some seconds. */
#define _GNU_SOURCE
#include <sys/statvfs.h>
#include <sys/time.h>

int statvfs(const char *path, struct statvfs *about)
{
    (void)path;
    about->f_bsize = about->f_frsize = 4096;
    about->f_blocks = about->f_bfree = about->f_bavail = 1UL << 36;
    return 0;
}

int statvfs64(const char *path, struct statvfs64 *about)
{
    return statvfs(path, (struct statvfs *)about);
}

unsigned alarm(unsigned seconds)
{
    const struct itimerval time = {.it_value.tv_sec = seconds < 4 ? seconds : 4};

    setitimer(ITIMER_REAL, &time, 0);
    return 0;
}
