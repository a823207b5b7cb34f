# Types of what cluster.codec uses of msgpack; it ships none.
def packb(o: object, *, use_bin_type: bool = ...) -> bytes: ...
def unpackb(
    packed: bytes,
    *,
    raw: bool = ...,
    use_list: bool = ...,
    max_str_len: int = ...,
    max_bin_len: int = ...,
    max_array_len: int = ...,
    max_map_len: int = ...,
    max_ext_len: int = ...,
) -> object: ...
