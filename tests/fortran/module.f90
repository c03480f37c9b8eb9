! The module mpi: interfaces that the compiler checks, buffers of every type, pointers of both kinds, own files.
module conversions
  use mpi
  implicit none
  integer :: calls = 0
contains
  subroutine extent(datatype, size, extra_state, ierror)
    integer :: datatype, ierror
    integer(kind=MPI_ADDRESS_KIND) :: size, extra_state
    integer :: bytes
    call MPI_Type_size(datatype, bytes, ierror)
    size = bytes
    if (extra_state /= 5) ierror = MPI_ERR_OTHER
  end subroutine

  subroutine swap(userbuf, datatype, count, filebuf, position, extra_state, ierror)
    integer :: datatype, count, ierror
    integer :: userbuf(*), filebuf(*)
    integer(kind=MPI_OFFSET_KIND) :: position
    integer(kind=MPI_ADDRESS_KIND) :: extra_state
    userbuf(position+1 : position+count) = -filebuf(1:count)
    calls = calls + 1
    ierror = MPI_SUCCESS
  end subroutine

  subroutine unswap(userbuf, datatype, count, filebuf, position, extra_state, ierror)
    integer :: datatype, count, ierror
    integer :: userbuf(*), filebuf(*)
    integer(kind=MPI_OFFSET_KIND) :: position
    integer(kind=MPI_ADDRESS_KIND) :: extra_state
    filebuf(1:count) = -userbuf(position+1 : position+count)
    calls = calls + 1
    ierror = MPI_SUCCESS
  end subroutine
end module

program module_mpi
  use mpi
  use, intrinsic :: iso_c_binding
  use conversions
  implicit none
  integer :: err, rank, size, n, status(MPI_STATUS_SIZE), request, types(2), fh, win, keyval
  integer(kind=MPI_ADDRESS_KIND) :: bytes, place, value
  integer(kind=MPI_COUNT_KIND) :: each
  integer :: parts(6), requests(2)
  real :: matrix(4, 4)
  character(len=8) :: text
  complex(kind=8) :: z
  integer, allocatable :: list(:)
  type(c_ptr) :: pointed
  integer, pointer :: memory(:)
  type(MPI_Status) :: new
  logical :: flag
  character(len=200) :: path

  call MPI_Init_thread(MPI_THREAD_FUNNELED, n, err)
  call check(n >= MPI_THREAD_FUNNELED, 'thread level')
  call MPI_Comm_rank(MPI_COMM_WORLD, rank, err)
  call MPI_Comm_size(MPI_COMM_WORLD, size, err)

  ! Buffers: scalars, strings, sections that are not contiguous.
  matrix = rank
  if (rank == 0) matrix(2, :) = [1.0, 2.0, 3.0, 4.0]
  call MPI_Bcast(matrix(2, :), 4, MPI_REAL, 0, MPI_COMM_WORLD, err)
  call check(all(matrix(2, :) == [1.0, 2.0, 3.0, 4.0]), 'a row')
  call check(all(matrix(1, :) == rank), 'beside the row')
  text = merge('greeting', '        ', rank == 0)
  call MPI_Bcast(text, 8, MPI_CHARACTER, 0, MPI_COMM_WORLD, err)
  call check(text == 'greeting', 'a string')
  z = cmplx(rank + 1, 1, kind=8)
  call MPI_Allreduce(MPI_IN_PLACE, z, 1, MPI_DOUBLE_COMPLEX, MPI_SUM, MPI_COMM_WORLD, err)
  call check(z == cmplx(size*(size+1)/2, size, kind=8), 'a complex number')
  allocate(list(size))
  call MPI_Allgather(rank, 1, MPI_INTEGER, list, 1, MPI_INTEGER, MPI_COMM_WORLD, err)
  call check(all(list == [(n, n = 0, size-1)]), 'an allocatable array')

  ! Types of each neighbour, and of the interface's own.
  types = [MPI_INTEGER, MPI_REAL8]
  call MPI_Type_create_struct(2, [1, 1], [0_MPI_ADDRESS_KIND, 8_MPI_ADDRESS_KIND], types, n, err)
  call MPI_Type_size(n, keyval, err)
  call check(keyval == 12, 'a structure')
  call MPI_Type_free(n, err)
  call MPI_Sizeof(z, n, err)
  call check(n == 16, 'bytes of an element')
  call MPI_Type_match_size(MPI_TYPECLASS_REAL, 8, n, err)
  call check(n == MPI_REAL8 .or. n == MPI_DOUBLE_PRECISION, 'a type of that size')

  ! Memory by both kinds of pointer.
  bytes = 40
  call MPI_Alloc_mem(bytes, MPI_INFO_NULL, pointed, err)
  call c_f_pointer(pointed, memory, [10])
  memory = rank
  call check(sum(memory) == 10*rank, 'memory')
  call MPI_Free_mem(memory, err)
  call MPI_Win_allocate(bytes, 4, MPI_INFO_NULL, MPI_COMM_WORLD, place, win, err)
  call MPI_Win_get_attr(win, MPI_WIN_BASE, value, flag, err)
  call check(flag .and. value == place, 'base of a window')
  call MPI_Win_get_attr(win, MPI_WIN_SIZE, value, flag, err)
  call check(flag .and. value == 40, 'size of a window')
  call MPI_Win_get_attr(win, MPI_WIN_DISP_UNIT, value, flag, err)
  call check(flag .and. value == 4, 'unit of a window')
  call MPI_Win_fence(0, win, err)
  call MPI_Put(rank, 1, MPI_INTEGER, mod(rank+1, size), 3_MPI_ADDRESS_KIND, 1, MPI_INTEGER, win, err)
  call MPI_Win_fence(0, win, err)
  call c_f_pointer(transfer(place, pointed), memory, [10])
  call check(memory(4) == mod(rank+size-1, size), 'put')
  call MPI_Win_free(win, err)

  ! Statuses of both interfaces.
  call MPI_Isend(rank, 1, MPI_INTEGER, mod(rank+1, size), 9, MPI_COMM_WORLD, request, err)
  call MPI_Recv(n, 1, MPI_INTEGER, MPI_ANY_SOURCE, 9, MPI_COMM_WORLD, status, err)
  call MPI_Wait(request, MPI_STATUS_IGNORE, err)
  call MPI_Status_f2f08(status, new, err)
  call check(new%MPI_SOURCE == n .and. new%MPI_TAG == 9, 'status')

  ! Messages in parts, whose counts are large in this interface as well.
  each = 3
  parts = rank
  call MPI_Precv_init(parts(4:), 1, each, MPI_INTEGER, mod(rank+size-1, size), 5, MPI_COMM_WORLD, MPI_INFO_NULL, &
                      requests(1), err)
  call MPI_Psend_init(parts, 3, 1_MPI_COUNT_KIND, MPI_INTEGER, mod(rank+1, size), 5, MPI_COMM_WORLD, MPI_INFO_NULL, &
                      requests(2), err)
  call MPI_Startall(2, requests, err)
  call MPI_Pready_range(0, 2, requests(2), err)
  call MPI_Waitall(2, requests, MPI_STATUSES_IGNORE, err)
  call check(all(parts(4:) == mod(rank+size-1, size)), 'a message in parts')
  call MPI_Request_free(requests(1), err)
  call MPI_Request_free(requests(2), err)

  ! A representation of data of one's own.
  call get_command_argument(1, path)
  bytes = 5
  call MPI_Register_datarep('negative', swap, unswap, extent, bytes, err)
  call check(err == MPI_SUCCESS, 'a representation')
  call MPI_File_open(MPI_COMM_WORLD, path, ior(MPI_MODE_CREATE, MPI_MODE_RDWR), MPI_INFO_NULL, fh, err)
  call check(err == MPI_SUCCESS, 'opened')
  call MPI_File_set_view(fh, 0_MPI_OFFSET_KIND, MPI_INTEGER, MPI_INTEGER, 'negative', MPI_INFO_NULL, err)
  call MPI_File_write_at_all(fh, int(rank, MPI_OFFSET_KIND), rank+1, 1, MPI_INTEGER, status, err)
  call check(err == MPI_SUCCESS, 'written')
  call MPI_File_read_at_all(fh, int(rank, MPI_OFFSET_KIND), n, 1, MPI_INTEGER, status, err)
  call check(n == rank+1 .and. calls >= 2, 'read as it was written')
  call MPI_File_set_view(fh, 0_MPI_OFFSET_KIND, MPI_INTEGER, MPI_INTEGER, 'native', MPI_INFO_NULL, err)
  call MPI_File_read_at_all(fh, int(rank, MPI_OFFSET_KIND), n, 1, MPI_INTEGER, status, err)
  call check(n == -(rank+1), 'converted in the file')
  call MPI_File_close(fh, err)

  ! An attribute that is copied as it is.
  value = -9
  call MPI_Comm_create_keyval(MPI_COMM_DUP_FN, MPI_COMM_NULL_DELETE_FN, keyval, value, err)
  call MPI_Comm_set_attr(MPI_COMM_WORLD, keyval, value, err)
  call MPI_Comm_dup(MPI_COMM_WORLD, n, err)
  value = 0
  call MPI_Comm_get_attr(n, keyval, value, flag, err)
  call check(flag .and. value == -9, 'copied as it is')
  call MPI_Comm_free(n, err)

  if (rank == 0) print '(a)', 'ok'
  call MPI_Finalize(err)
contains
  subroutine check(right, what)
    logical, intent(in) :: right
    character(len=*), intent(in) :: what
    if (right) return
    print *, 'wrong: ', what
    call MPI_Abort(MPI_COMM_WORLD, 1, err)
  end subroutine
end program
