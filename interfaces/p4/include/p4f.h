!     P4 for Fortran.
      integer*4 p4myid, p4ntotids, p4nslaves, p4myclid, p4nclids
      integer*4 p4clock, p4ustimer

      integer*4 P4NOX, P4INT, P4LNG, P4FLT, P4DBL
      parameter (P4NOX = 0, P4INT = 1, P4LNG = 2, P4FLT = 3, P4DBL = 4)

      external p4intsumop, p4intmultop, p4intmaxop, p4intminop
      external p4intabsmaxop, p4intabsminop
      external p4fltsumop, p4fltmultop, p4fltmaxop, p4fltminop
      external p4fltabsmaxop, p4fltabsminop
      external p4dblsumop, p4dblmultop, p4dblmaxop, p4dblminop
      external p4dblabsmaxop, p4dblabsminop
