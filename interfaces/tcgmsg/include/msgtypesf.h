!     What may be added to the type of a TCGMSG message.
      integer msgdbl, msgint, msgchr
      parameter (msgdbl = 65536, msgint = 131072, msgchr = 262144)
