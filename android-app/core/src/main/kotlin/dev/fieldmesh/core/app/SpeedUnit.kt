package dev.fieldmesh.core.app

/** In what speeds are shown and spoken; what is sent and recorded is in m/s. */
enum class SpeedUnit(private val perMps: Double) {
    KMH(3.6),
    MPH(3600 / 1609.344), // the international mile
    MPS(1.0),
    ;

    fun of(mps: Double): Double = mps * perMps

    /** A speed in this unit as m/s, to the millimetre. */
    fun inMps(speed: Double): Double = Math.round(speed / perMps * 1000) / 1000.0

    /** A node's words with all their speeds in this unit: "9.2 of 13.9 m/s" → "33.1 of 50.0 km/h". */
    fun inWords(text: String, symbol: String): String = SPEEDS.replace(text) { found ->
        NUMBER.replace(found.groupValues[1]) { shown(it.value) } + " $symbol"
    }

    private fun shown(mps: String) = if (this == MPS) mps else "%.1f".format(of(mps.toDouble()))

    private companion object {
        val NUMBER = Regex("""\d+(?:\.\d+)?""")

        /** One number or several, and their unit once, after the last. */
        val SPEEDS = Regex("""((?:$NUMBER(?:, | to | up to | ± | of | and ))*$NUMBER) m/s(?![\w²])""")
    }
}
