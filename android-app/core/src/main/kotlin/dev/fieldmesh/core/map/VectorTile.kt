package dev.fieldmesh.core.map

/** What a feature's parts are (section 4.3.4): places, open lines, or rings. */
enum class Geometry { UNKNOWN, POINTS, LINES, POLYGONS }

/** A layer of a tile; [extent] is the steps from one side of the tile to the other. */
class Layer internal constructor(
    val name: String,
    val extent: Int,
    private val bodies: List<Wire>,
    private val keys: List<String>,
    private val values: List<Wire>,
) {
    private val pieces get() = bodies.size + keys.size + values.size

    /** One after another, so that not all of them are in memory. */
    val features: Sequence<Feature> get() = bodies.asSequence().map { Feature(it.again()) }

    inner class Feature internal constructor(body: Wire) {
        var type = Geometry.UNKNOWN
            private set
        private var tags: Wire? = null
        private var geometry: Wire? = null

        init {
            while (body.next()) {
                when (body.number) {
                    2 -> tags = body.inside
                    3 -> type = Geometry.entries.getOrNull(body.value.toInt()) ?: Geometry.UNKNOWN
                    4 -> geometry = body.inside
                }
            }
        }

        /** A property; null if the feature has none of that name, or none that is a text, or a long one. */
        fun text(key: String): String? {
            val all = tags?.again() ?: return null
            while (all.left > 0) {
                val name = keys.getOrNull(all.varint().toIndex())
                val value = values.getOrNull(all.varint().toIndex())
                if (name == key) return value?.takeIf { it.left <= TEXT_MOST }?.again()?.let(::textOf)
            }
            return null
        }

        /**
         * Its places, lines or rings, each as x and y by turns: steps to the right of the tile's left upper corner, and
         * below it. They may lie outside. A ring does not repeat its first place.
         */
        fun parts(): List<IntArray> = geometry?.let { Pen(it.again()).parts() }.orEmpty()
    }

    private fun Long.toIndex() = if (this in 0..Int.MAX_VALUE) toInt() else -1

    companion object {
        private const val EXTENT_MOST = 1L shl 16

        // Bounds of what a tile that somebody made to do harm takes of memory, and of time for each feature.
        private const val LAYERS_MOST = 256
        private const val PIECES_MOST = 1 shl 17 // features, names of properties and values, of all layers
        private const val TEXT_MOST = 256 // bytes

        /**
         * The layers of a vector tile: version 2 of Mapbox's specification (github.com/mapbox/vector-tile-spec, 2.1).
         * What they and their properties mean is for others.
         */
        fun read(tile: ByteArray): List<Layer> {
            val all = Wire(tile)
            val layers = mutableListOf<Layer>()
            var left = PIECES_MOST
            while (all.next()) {
                val layer = all.inside.takeIf { all.number == 3 } ?: continue
                if (layers.size == LAYERS_MOST) damaged("a tile has more than $LAYERS_MOST layers")
                layers += layer(layer, left).also { left -= it.pieces }
            }
            return layers
        }

        private fun layer(text: Wire, most: Int): Layer {
            var name = ""
            var extent = 4096L
            val bodies = mutableListOf<Wire>()
            val keys = mutableListOf<String>()
            val values = mutableListOf<Wire>()
            while (text.next()) {
                val inside = text.inside
                when {
                    text.number == 5 && inside == null -> extent = text.value
                    inside == null -> Unit
                    text.number == 1 -> name = inside.text()
                    text.number == 2 -> bodies += inside
                    text.number == 3 -> keys += inside.text()
                    text.number == 4 -> values += inside
                }
                if (bodies.size + keys.size + values.size > most) damaged("a tile has more than $PIECES_MOST pieces")
            }
            if (extent !in 1..EXTENT_MOST) damaged("a tile is $extent steps wide")
            return Layer(name, extent.toInt(), bodies, keys, values)
        }

        private fun textOf(value: Wire): String? {
            while (value.next()) if (value.number == 1) return value.inside?.text()
            return null
        }
    }
}

/** Follows the commands of a feature's geometry (section 4.3.1). */
private class Pen(private val text: Wire) {
    private val parts = mutableListOf<IntArray>()
    private val part = IntArray(text.left + 2) // no place takes less than two bytes
    private var n = 0
    private var x = 0
    private var y = 0

    fun parts(): List<IntArray> {
        while (text.left > 0) {
            val command = text.varint()
            val id = (command and 7).toInt()
            if (id == CLOSE_PATH) continue
            if (id != MOVE_TO && id != LINE_TO) damaged("a tile has the command $id")
            if (command ushr 3 > text.left / 2) damaged("a tile has fewer places than it says")
            repeat((command ushr 3).toInt()) { go(isMove = id == MOVE_TO) }
        }
        end()
        return parts
    }

    private fun go(isMove: Boolean) {
        if (isMove) {
            end()
        } else if (n == 0) {
            damaged("a tile has a line that begins nowhere")
        }
        x = step(x)
        y = step(y)
        part[n++] = x
        part[n++] = y
    }

    private fun end() {
        if (parts.size == PARTS_MOST) damaged("a feature has more than $PARTS_MOST parts")
        if (n > 0) parts += part.copyOf(n)
        n = 0
    }

    /** A number with a sign is written by zigzag (section 4.3.2). */
    private fun step(from: Int): Int {
        val told = text.varint()
        val to = from + ((told ushr 1) xor -(told and 1))
        if (to !in -FAR_MOST..FAR_MOST) damaged("a tile has a place far outside")
        return to.toInt()
    }

    private companion object {
        const val MOVE_TO = 1
        const val LINE_TO = 2
        const val CLOSE_PATH = 7
        const val FAR_MOST = 1L shl 20 // steps from the corner
        const val PARTS_MOST = 1 shl 16
    }
}
