/* What is known of the file that HDF5 has open, for HDF5 itself and for netCDF,
 * which rests on it and tells none of this. HDF5's functions are looked for in the
 * running program: netCDF brings them along, be it built with the layer hdf5 or
 * not, and nobody needs its headers. */
#define _GNU_SOURCE

#include <dlfcn.h>
#include <stdint.h>
#include <string.h>
#include <sys/types.h>

/* hid_t has 64 bits since HDF5 1.10. */
typedef ssize_t list_open_t(int64_t, unsigned, size_t, int64_t *);
typedef ssize_t tell_name_t(int64_t, char *, size_t);
typedef int64_t tell_start_t(int64_t);
typedef int tell_handle_t(int64_t, int64_t, void **);

enum { all_files = 0x1f, files = 0x1, datasets = 0x2, most = 64 };

static int look_up(const char *name, void *function)
{
    void *const found = dlsym(RTLD_DEFAULT, name);
    memcpy(function, &found, sizeof found);
    return found != NULL;
}

/* Returns the byte where an open dataset begins, or -1 when nothing tells. */
int64_t benchio_dataset_start(const char *path_in_file)
{
    int64_t open[most];
    char name[most];
    list_open_t *list_open;
    tell_name_t *tell_name;
    tell_start_t *tell_start;

    if (!look_up("H5Fget_obj_ids", &list_open) || !look_up("H5Iget_name", &tell_name) ||
        !look_up("H5Dget_offset", &tell_start))
        return -1;
    const ssize_t found = list_open(all_files, datasets, most, open);
    for (ssize_t at = 0; at < found; at++)
        if (tell_name(open[at], name, sizeof name) > 0 && strcmp(name, path_in_file) == 0)
            return tell_start(open[at]);
    return -1;
}

/* Returns C's MPI_File of the open file, a pointer in all MPI libraries, or NULL. */
void *benchio_hdf5_mpi_file(void)
{
    int64_t open;
    void *place;
    list_open_t *list_open;
    tell_handle_t *tell_handle;

    if (!look_up("H5Fget_obj_ids", &list_open) || !look_up("H5Fget_vfd_handle", &tell_handle))
        return NULL;
    if (list_open(all_files, files, 1, &open) != 1 || tell_handle(open, 0, &place) < 0)
        return NULL;
    return *(void **)place;
}
