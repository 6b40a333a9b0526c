package dev.fieldmesh.core.map

/** Bytes as PMTiles and protobuf write numbers, from [at] to before [end]; nothing is read beside them. */
internal class Wire(private val bytes: ByteArray, private var at: Int = 0, private val end: Int = bytes.size) {
    val left get() = end - at

    /** The number of the field that [next] has found, and its value; or its bytes, if it has such. */
    var number = 0
        private set
    var value = 0L
        private set
    var inside: Wire? = null
        private set

    /** A number of at most 64 bits, in groups of seven, the lowest first. */
    fun varint(): Long {
        var v = 0L
        for (shift in 0 until 64 step 7) {
            if (at == end) damaged("it ends within a number")
            val b = bytes[at++].toInt()
            v = v or (b.toLong() and 0x7f shl shift)
            if (b >= 0) return v
        }
        damaged("a number does not end")
    }

    /** Goes to the next field of a message; false at its end. */
    fun next(): Boolean {
        if (at == end) return false
        val key = varint()
        number = (key ushr 3).coerceAtMost(Int.MAX_VALUE.toLong()).toInt()
        inside = null
        val length = when ((key and 7).toInt()) {
            0 -> {
                value = varint()
                0
            }
            1 -> 8
            2 -> varint()
            5 -> 4
            else -> damaged("a field is of type ${key and 7}")
        }
        if (length !in 0..left) damaged("a field is longer than its message")
        if (key and 7 == 2L) inside = Wire(bytes, at, at + length.toInt())
        at += length.toInt()
        return true
    }

    fun text(): String = bytes.decodeToString(at, end)

    /** The same bytes, to be read from here again. */
    fun again() = Wire(bytes, at, end)
}
