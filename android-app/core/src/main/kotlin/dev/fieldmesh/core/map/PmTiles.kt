package dev.fieldmesh.core.map

import dev.fieldmesh.core.wire.WireJson
import kotlinx.serialization.Serializable
import kotlinx.serialization.SerializationException
import java.io.ByteArrayOutputStream
import java.io.Closeable
import java.io.EOFException
import java.io.IOException
import java.io.InputStream
import java.nio.ByteBuffer
import java.nio.ByteOrder
import java.nio.channels.FileChannel
import java.util.zip.GZIPInputStream
import java.util.zip.ZipException

/** Why a map's file cannot be drawn; a person is told what to do about each. */
enum class MapFault {
    OTHER_FORMAT,
    OTHER_VERSION,
    OTHER_COMPRESSION,
    OTHER_TILES,
    TOO_SHORT,
    DAMAGED,
    TOO_MUCH,
    UNREADABLE,
}

/** [message] says where in the file it is. */
class MapException(val fault: MapFault, message: String, cause: Throwable? = null) : IOException(message, cause)

internal fun damaged(what: String, cause: Throwable? = null): Nothing =
    throw MapException(MapFault.DAMAGED, what, cause)

private fun refuse(fault: MapFault, what: String): Nothing = throw MapException(fault, what)

/** A tile's place: column [x] and row [y], from the north-western corner, of the 2^[zoom] by 2^[zoom] of the Earth. */
data class TileAt(val zoom: Int, val x: Int, val y: Int) {
    /** The tile of the next coarser zoom that holds this one. */
    val parent: TileAt? get() = if (zoom == 0) null else TileAt(zoom - 1, x shr 1, y shr 1)

    /** Its number in the file's order (section 4.1): zoom after zoom, each along a Hilbert curve. */
    internal val id: Long
        get() {
            var id = ((1L shl 2 * zoom) - 1) / 3 // of all zooms before
            var column = x
            var row = y
            for (level in zoom - 1 downTo 0) {
                val side = 1 shl level
                val right = column and side != 0
                val low = row and side != 0
                val quarter = when {
                    right -> if (low) 2L else 3L
                    else -> if (low) 1L else 0L
                }
                id += quarter shl 2 * level
                column = column and side - 1
                row = row and side - 1
                if (low) continue
                val turned = if (right) side - 1 - column else column // the curve of an upper quarter is turned
                column = if (right) side - 1 - row else row
                row = turned
            }
            return id
        }
}

enum class TileType { MVT, PNG, JPEG, WEBP }

/**
 * An archive of map tiles, read from a file: version 3 of PMTiles, whose specification is in
 * github.com/protomaps/PMTiles. The header and the root directory are read at once, everything else when it is asked
 * for. May be used by any thread.
 */
class PmTiles(private val file: FileChannel) : Closeable {
    private class Section(val offset: Long, val length: Long)

    private class Header(text: ByteBuffer) {
        val root = Section(text.getLong(8), text.getLong(16))
        val metadata = Section(text.getLong(24), text.getLong(32))
        val leaves = Section(text.getLong(40), text.getLong(48))
        val tiles = Section(text.getLong(56), text.getLong(64))
        val packed = isPacked(text.get(97).toInt())
        val tilesPacked = isPacked(text.get(98).toInt())
        val type = TileType.entries.getOrNull(text.get(99) - 1)
            ?: refuse(MapFault.OTHER_TILES, "the tiles are of type ${text.get(99)}")
        val zooms = text.get(100).toInt()..text.get(101).toInt()
        val degrees = List(4) { text.getInt(102 + 4 * it) / 1e7 }

        private fun isPacked(how: Int) = when (how) {
            1 -> false
            2 -> true
            else -> refuse(MapFault.OTHER_COMPRESSION, "it is compressed in way $how of the format")
        }
    }

    /** [runs] is 0 for a directory. */
    private class Directory(val ids: LongArray, val runs: LongArray, val parts: List<Section>)

    @Serializable
    private class Told(val attribution: String? = null)

    /** Whether the file could not be read when that was tried last. */
    @Volatile
    var isLost = false
        private set

    private val size = file.size()
    private val header = readHeader()
    private val root = directory(header.root, ROOT_MOST)
    private val leaves = Kept<Long, Directory>(LEAVES_KEPT) { 1 }
    private val tiles = Kept<TileAt, ByteArray>(TILE_BYTES_KEPT) { it.size + ENTRY_BYTES }

    val type get() = header.type
    val zooms get() = header.zooms

    /** West, south, east and north, in degrees, as the archive says it. */
    val bounds get() = header.degrees

    /** Of whom the map is, in their own words and markup; empty where the archive does not say it. */
    val attribution = try {
        val told = if (header.metadata.length == 0L) "" else bytes(header.metadata, header.packed).decodeToString()
        WireJson.decodeFromString(Told.serializer(), told.ifBlank { "{}" }).attribution.orEmpty()
    } catch (e: SerializationException) {
        damaged("its metadata is no JSON: ${e.message}", e)
    }

    override fun close() = file.close()

    /** The tile there, or the finest of those that it lies in; null where the archive has none. */
    @Synchronized
    fun cover(at: TileAt): Pair<TileAt, ByteArray>? =
        generateSequence(at, TileAt::parent).firstNotNullOfOrNull { a -> tile(a)?.let { a to it } }

    /** What a tile holds, unpacked; null where the archive has none. */
    @Synchronized
    fun tile(at: TileAt): ByteArray? {
        val side = 1 shl at.zoom.coerceIn(0, ZOOM_MOST)
        if (at.zoom !in zooms || at.x !in 0 until side || at.y !in 0 until side) return null
        tiles[at]?.let { return it }
        return find(at.id)?.let { bytes(it, header.tilesPacked) }?.also { tiles[at] = it }
    }

    private fun readHeader(): Header {
        val text = ByteBuffer.wrap(read(Section(0, minOf(size, HEADER_BYTES)))).order(ByteOrder.LITTLE_ENDIAN)
        val magic = text.array().decodeToString()
        if (!magic.startsWith("PM")) refuse(MapFault.OTHER_FORMAT, "it is no PMTiles archive")
        if (!magic.startsWith("PMTiles\u0003")) {
            refuse(MapFault.OTHER_VERSION, "it is PMTiles of another version than 3")
        }
        if (size < HEADER_BYTES) refuse(MapFault.TOO_SHORT, "it has $size bytes")
        val read = Header(text)
        val (least, most) = read.zooms.first to read.zooms.last
        if (least < 0 || least > most || most > ZOOM_MOST) damaged("it has zooms $least to $most")
        return read
    }

    /** Where a tile lies in the file. */
    private fun find(id: Long): Section? {
        var directory = root
        repeat(DEPTH_MOST) {
            val found = directory.ids.binarySearch(id)
            val i = if (found >= 0) found else -found - 2
            if (i < 0) return null
            val part = directory.parts[i]
            if (directory.runs[i] > 0) {
                return if (id - directory.ids[i] < directory.runs[i]) within(header.tiles, part) else null
            }
            val at = within(header.leaves, part)
            directory = leaves[at.offset] ?: directory(at, PACKED_MOST).also { leaves[at.offset] = it }
        }
        damaged("its directories lie deeper than $DEPTH_MOST below each other")
    }

    private fun within(whole: Section, part: Section): Section {
        if (part.length <= 0 || part.offset !in 0..whole.length - part.length) {
            damaged("a directory points out of the file")
        }
        return Section(whole.offset + part.offset, part.length)
    }

    /** All numbers of tiles, then all runs, lengths and offsets (section 4.2). */
    private fun directory(at: Section, most: Long): Directory {
        if (at.length > most) damaged("a directory has ${at.length} bytes, and may have $most")
        val text = Wire(bytes(at, header.packed))
        val n = text.varint()
        if (n !in 1..ENTRIES_MOST || n > text.left / 4) damaged("a directory has ${n.toULong()} entries")
        var id = 0L
        val ids = LongArray(n.toInt()) { i ->
            val step = text.varint()
            if (i > 0 && step == 0L || step !in 0..Long.MAX_VALUE - id) damaged("a directory is not in order")
            id += step
            id
        }
        val runs = LongArray(ids.size) { text.varint() }
        val lengths = LongArray(ids.size) { text.varint() }
        var next = 0L
        val parts = List(ids.size) { i ->
            val told = text.varint()
            if (i == 0 && told == 0L) damaged("a directory's first entry has no place")
            val offset = if (told == 0L) next else told - 1
            next = offset + lengths[i]
            Section(offset, lengths[i])
        }
        return Directory(ids, runs, parts)
    }

    private fun bytes(at: Section, packed: Boolean): ByteArray {
        val raw = read(at)
        if (!packed) return raw
        return try {
            GZIPInputStream(raw.inputStream()).use(::unpacked)
        } catch (e: EOFException) {
            damaged("it ends within what is packed", e)
        } catch (e: ZipException) {
            damaged("it cannot be unpacked: ${e.message}", e)
        }
    }

    private fun unpacked(z: InputStream): ByteArray {
        val out = ByteArrayOutputStream()
        val some = ByteArray(CHUNK_BYTES)
        while (true) {
            val n = z.read(some)
            if (n < 0) return out.toByteArray()
            out.write(some, 0, n)
            if (out.size() > UNPACKED_MOST) damaged("it unpacks to more than $UNPACKED_MOST bytes")
        }
    }

    private fun read(at: Section): ByteArray {
        if (at.offset < 0 || at.length !in 0..PACKED_MOST) damaged("a part has ${at.length.toULong()} bytes")
        val into = ByteBuffer.allocate(at.length.toInt())
        var n = if (at.offset > size - at.length) -1 else 0
        isLost = true
        while (n >= 0 && into.hasRemaining()) n = file.read(into, at.offset + into.position())
        isLost = false
        if (into.hasRemaining()) refuse(MapFault.TOO_SHORT, "it has $size bytes, which is not all of it")
        return into.array()
    }

    private companion object {
        const val HEADER_BYTES = 127L

        // Bounds of what is read of a file that somebody made to do harm. The archive of the whole Earth, with 16
        // zooms, has leaves of some 40,000 entries.
        const val ROOT_MOST = 16384L - HEADER_BYTES // compressed (section 4)
        const val PACKED_MOST = 2L shl 20 // of anything else, as it lies in the file
        const val UNPACKED_MOST = 4 shl 20
        const val ENTRIES_MOST = 1L shl 17 // of a directory
        const val DEPTH_MOST = 4 // of directories; a writer ought to make two
        const val ZOOM_MOST = 26 // whose numbers fit everything here
        const val LEAVES_KEPT = 4
        const val TILE_BYTES_KEPT = 8 shl 20
        const val ENTRY_BYTES = 64 // which even an empty tile takes
        const val CHUNK_BYTES = 1 shl 14
    }
}

/** What was used last, in at most so much room. */
private class Kept<K, V>(private val most: Int, private val roomOf: (V) -> Int) {
    private val all = LinkedHashMap<K, V>(16, 0.75f, true)
    private var room = 0

    operator fun get(key: K): V? = all[key]

    operator fun set(key: K, value: V) {
        room += roomOf(value) - (all.put(key, value)?.let(roomOf) ?: 0)
        val oldest = all.values.iterator()
        while (room > most && all.size > 1) {
            room -= roomOf(oldest.next())
            oldest.remove()
        }
    }
}
