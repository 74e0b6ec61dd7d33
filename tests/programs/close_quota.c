/* Preloaded into a process and its children: makes each close of a file that was open for writing
 * and has $CLOSE_QUOTA in its path fail because the quota is exceeded, as NFS does. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

int close(int file)
{
    const char *name = getenv("CLOSE_QUOTA");
    char link[64], path[PATH_MAX] = "";
    const int mode = fcntl(file, F_GETFL);
    int status;

    snprintf(link, sizeof link, "/proc/self/fd/%d", file);
    if (readlink(link, path, sizeof path - 1) < 0)
        path[0] = 0;
    status = (int)syscall(SYS_close, file);
    if (status == 0 && name && (mode & O_ACCMODE) != O_RDONLY && strstr(path, name)) {
        errno = EDQUOT;
        return -1;
    }
    return status;
}
