"""What would my Spark job do elsewhere?"""
