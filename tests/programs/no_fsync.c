/* Preloaded into a process: fsync fails, as on a file system that does not support it. */
#include <errno.h>
#include <unistd.h>

int fsync(int file)
{
    (void)file;
    errno = EINVAL;
    return -1;
}
