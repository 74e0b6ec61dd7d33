/* Preloaded into a process and its children: sets the clock back by an hour while
 * the file $CLOCK_IS_BACK exists. The monotonic clock is not changed. */
#define _GNU_SOURCE
#include <stdlib.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

int clock_gettime(clockid_t clock, struct timespec *now)
{
    const char *file = getenv("CLOCK_IS_BACK");
    int status = (int)syscall(SYS_clock_gettime, clock, now);

    if (status == 0 && clock == CLOCK_REALTIME && file && access(file, F_OK) == 0)
        now->tv_sec -= 3600;
    return status;
}

int gettimeofday(struct timeval *restrict now, void *restrict zone)
{
    struct timespec exact;

    (void)zone;
    if (clock_gettime(CLOCK_REALTIME, &exact) != 0)
        return -1;
    now->tv_sec = exact.tv_sec;
    now->tv_usec = exact.tv_nsec / 1000;
    return 0;
}

time_t time(time_t *where)
{
    struct timespec exact;

    if (clock_gettime(CLOCK_REALTIME, &exact) != 0)
        return -1;
    if (where)
        *where = exact.tv_sec;
    return exact.tv_sec;
}
